// y = A x, where each rank has the rows of A, and the parts of x and y, of an even part of the
// points. Elements of x that others have come by gets of patches: runs of columns, found once.
//
//   columns that rows of this rank use:    ..oooo....XXXXXXXXXX..oooo...
//                                            halo    own        halo
#pragma once

#include <common/rank_figures.hpp>
#include <farside/algorithms/local/spmv.hpp>
#include <farside/algorithms/matrix_generators/rows.hpp>
#include <farside/containers/csr.hpp>
#include <farside/containers/global_array.hpp>
#include <farside/containers/matrix_part.hpp>

#include <algorithm>
#include <span>
#include <vector>

namespace spmv_program {

using vector = far::global_array<double, 1>;

class product {
 public:
  /// Of the Laplacian of a grid: this rank's rows. Local.
  product(const far::laplacian_3d& grid, const far::index_range& rows) : rows_(rows) {
    std::vector<std::size_t> others;
    auto each = [&](auto emit) {
      for (std::size_t r = rows.first; r < rows.last; ++r)
        grid.row<double>(r, [&](std::size_t c, double value) { emit(r, c, value); });
    };
    each([&](std::size_t, std::size_t c, double) {
      if (!rows.contains(c)) others.push_back(c);
    });
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    for (std::size_t c : others) {
      if (halo_.empty() || halo_.back().last != c) halo_.push_back({c, c});
      ++halo_.back().last;
    }
    std::vector<far::triplet<double>> entries;
    each([&](std::size_t r, std::size_t c, double value) {
      std::size_t column = c - rows.first;
      if (!rows.contains(c))
        column =
            rows.size() + static_cast<std::size_t>(
                              std::lower_bound(others.begin(), others.end(), c) - others.begin());
      entries.push_back({r - rows.first, column, value});
    });
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return a.row != b.row ? a.row < b.row : a.column < b.column;
    });
    x_.resize(rows.size() + others.size());
    matrix_ = far::csr<double, std::int32_t>::from_triplets({rows.size(), x_.size()}, entries);
  }

  /// y = A x. One-sided: others must not change x meanwhile.
  void run(const vector& x, const vector& y) {
    in_gets_ += programs::timed([&] {
      std::vector<far::future<void>> begun;
      std::size_t at = rows_.size();
      for (const far::index_range& run : halo_) {
        begun.push_back(x.async_get({run.first, run.last}, std::span(x_).subspan(at, run.size())));
        at += run.size();
      }
      far::when_all(std::move(begun)).get();
    });
    std::copy_n(x.local().data(), rows_.size(), x_.begin());
    auto mine = y.local();
    std::fill_n(mine.data(), rows_.size(), 0.0);
    far::spmv(matrix_.view(), std::span<const double>(x_),
              std::span<double>(mine.data(), rows_.size()));
  }

  double seconds_in_gets() const { return in_gets_; }
  std::size_t patches() const { return halo_.size(); }
  std::size_t halo_bytes() const { return (x_.size() - rows_.size()) * sizeof(double); }

 private:
  far::index_range rows_;
  std::vector<far::index_range> halo_;
  std::vector<double> x_;  ///< own elements, then those of others
  far::csr<double, std::int32_t> matrix_;
  double in_gets_ = 0;
};

}  // namespace spmv_program
