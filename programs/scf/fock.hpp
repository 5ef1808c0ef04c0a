// The two-electron part of the Fock matrix, by all ranks: tasks from a counter.
//
//   t = next task                         one fetch_add on a global array of one element
//   get the blocks of the density         D
//   integrals of these blocks, and what they add
//   accumulate the blocks of the result   G
//
// Functions are cut into blocks. A task is three of them, I >= J and I >= K, with all L <= K. An
// integral is made once for the eight orders of its functions that have one value.
#pragma once

#include "field.hpp"

#include <common/rank_figures.hpp>
#include <farside/algorithms/array_operations.hpp>
#include <farside/containers/global_array.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace scf_program {

class parallel_fock {
 public:
  /// Collective.
  parallel_fock(const system& s, std::size_t block)
      : system_(s),
        block_(block),
        blocks_((s.size() + block - 1) / block),
        density_({s.size(), s.size()}, {.name = "density"}),
        result_(density_.duplicate("two-electron part")),
        turned_(density_.duplicate("turned")),
        next_(1, {.name = "tasks"}) {
    for (std::size_t i = 0; i < blocks_; ++i) tasks_ += (i + 1) * (i + 1);
  }

  /// Collective.
  square operator()(const square& d) {
    density_.for_each_local([&](const far::array_index<2>& at, double& value) {
      value = d(static_cast<std::size_t>(at[0]), static_cast<std::size_t>(at[1]));
    });
    far::fill(result_, 0.0);
    if (far::rank() == 0) next_.put({0, 1}, std::vector<std::int64_t>{0});
    far::barrier();
    working += programs::timed([&] {
      for (std::size_t t; (t = next_task()) < tasks_; ++tasks_done) task(t);
    });
    waiting += programs::timed([&] { far::barrier(); });
    far::transpose(result_, turned_);
    far::add(0.5, result_, 0.5, turned_, result_);
    square g(d.n);
    result_.get(result_.all(), g.values);
    far::barrier();
    return g;
  }

  double working = 0, waiting = 0, in_gets = 0, in_sums = 0;
  std::uint64_t tasks_done = 0, integrals = 0;

 private:
  using box = far::patch<2>;

  std::size_t next_task() { return static_cast<std::size_t>(next_.fetch_add(0, 1)); }
  std::size_t first(std::size_t b) const { return b * block_; }
  std::size_t last(std::size_t b) const { return std::min(first(b) + block_, system_.size()); }
  box of(std::size_t a, std::size_t b) const { return {{first(a), first(b)}, {last(a), last(b)}}; }

  /// A block of the density, and what is added to that place of the result.
  struct tile {
    std::vector<double> density, sum;
    std::size_t row = 0, column = 0, wide = 0;
    double d(std::size_t i, std::size_t j) const { return density[(i - row) * wide + j - column]; }
    double& g(std::size_t i, std::size_t j) { return sum[(i - row) * wide + j - column]; }
  };
  void get(tile& t, std::size_t a, std::size_t b) {
    const box p = of(a, b);
    t.density.resize(p.size());
    t.sum.assign(p.size(), 0);
    t.row = first(a), t.column = first(b), t.wide = p.extent(1);
    in_gets += programs::timed([&] { density_.get(p, t.density); });
  }
  void add(const tile& t, std::size_t a, std::size_t b) {
    in_sums += programs::timed([&] { result_.accumulate(of(a, b), t.sum); });
  }

  void task(std::size_t t) {
    std::size_t a = 0;
    for (; t >= (a + 1) * (a + 1); ++a) t -= (a + 1) * (a + 1);
    const std::size_t b = t / (a + 1), c = t % (a + 1);
    get(ij_, a, b), get(ik_, a, c), get(jk_, b, c);
    for (std::size_t d = 0; d <= c; ++d) {
      get(kl_, c, d), get(jl_, b, d), get(il_, a, d);
      if (quartet(a, b, c, d) == 0) continue;
      add(kl_, c, d), add(jl_, b, d), add(il_, a, d);
    }
    add(ij_, a, b), add(ik_, a, c), add(jk_, b, c);
  }

  std::uint64_t quartet(std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    const std::uint64_t before = integrals;
    for (std::size_t i = first(a); i < last(a); ++i)
      for (std::size_t j = first(b); j < last(b) && j <= i; ++j) {
        const pair_of_functions& ij = system_.pair(i, j);
        for (std::size_t k = first(c); k < last(c) && k <= i; ++k)
          for (std::size_t l = first(d); l < last(d) && l <= k && (k < i || l <= j); ++l) {
            const pair_of_functions& kl = system_.pair(k, l);
            if (ij.bound * kl.bound < 1e-12) continue;
            const double orders = (i == j ? 1 : 2) * (k == l ? 1 : 2) * (i == k && j == l ? 1 : 2);
            const double value = orders * ij.repulsion(kl), quarter = value / 4;
            ++integrals;
            ij_.g(i, j) += kl_.d(k, l) * value;
            kl_.g(k, l) += ij_.d(i, j) * value;
            ik_.g(i, k) -= jl_.d(j, l) * quarter;
            jl_.g(j, l) -= ik_.d(i, k) * quarter;
            il_.g(i, l) -= jk_.d(j, k) * quarter;
            jk_.g(j, k) -= il_.d(i, l) * quarter;
          }
      }
    return integrals - before;
  }

  const system& system_;
  std::size_t block_, blocks_, tasks_ = 0;
  far::global_array<double, 2> density_, result_, turned_;
  far::global_array<std::int64_t, 1> next_;
  tile ij_, kl_, ik_, jl_, il_, jk_;
};

}  // namespace scf_program
