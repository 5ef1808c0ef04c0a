// The self-consistent field: what does not depend on how the Fock matrix is made.
#pragma once

#include "algebra.hpp"
#include "integrals.hpp"

#include <farside/base/error.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace scf_program {

struct system {
  system(const molecule& of, const std::string& basis)
      : m(of),
        functions(functions_of(of, basis)),
        hamiltonian(functions.size()),
        overlap(functions.size()),
        orthogonal(functions.size()) {
    const std::size_t n = size();
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j <= i; ++j) {
        pairs.emplace_back(functions[i], functions[j]);
        overlap(i, j) = overlap(j, i) = pairs.back().overlap();
        hamiltonian(i, j) = hamiltonian(j, i) = pairs.back().one_electron(m);
      }
    const eigen of_overlap(overlap);
    if (of_overlap.values[0] < 1e-6)
      throw far::error(
          "farside: the functions are nearly dependent on each other: atoms are too "
          "close for this basis");
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t k = 0; k < n; ++k)
          orthogonal(i, j) +=
              of_overlap.vectors(i, k) * of_overlap.vectors(j, k) / std::sqrt(of_overlap.values[k]);
  }

  std::size_t size() const { return functions.size(); }
  const pair_of_functions& pair(std::size_t i, std::size_t j) const {
    return i < j ? pair(j, i) : pairs[i * (i + 1) / 2 + j];
  }

  /// The density of the lowest orbitals of a Fock matrix.
  square density(const square& fock) const {
    const std::size_t n = size();
    const eigen orbitals(product(orthogonal, product(fock, orthogonal)));
    const square back = product(orthogonal, orbitals.vectors);
    square d(n);
    for (int k = 0; k < m.electrons / 2; ++k)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          d(i, j) += back(i, static_cast<std::size_t>(k)) * back(j, static_cast<std::size_t>(k));
    return d;
  }

  molecule m;
  std::vector<function> functions;
  std::vector<pair_of_functions> pairs;  ///< of i and j <= i
  square hamiltonian, overlap, orthogonal;
};

struct outcome {
  double energy = 0;
  std::size_t iterations = 0;
  bool converged = false;
};

/// Goes round until nothing changes: `two_electrons(density)` is the part of the Fock matrix that
/// depends on the density.
template <class TwoElectrons>
outcome solve(const system& s, std::size_t most, TwoElectrons two_electrons) {
  outcome result;
  const std::size_t n = s.size();
  square d = s.density(s.hamiltonian);
  const double nuclei = nuclear_energy(s.m);
  while (result.iterations < most && !result.converged) {
    square fock = two_electrons(d);
    double electrons = 0;
    for (std::size_t e = 0; e < n * n; ++e) {
      fock.values[e] += s.hamiltonian.values[e];
      electrons += d.values[e] * (s.hamiltonian.values[e] + fock.values[e]);
    }
    const square next = s.density(fock);
    double change = 0;
    for (std::size_t e = 0; e < n * n; ++e)
      change = std::max(change, std::abs(next.values[e] - d.values[e]));
    const double energy = electrons + nuclei;
    result.converged = change < 1e-8 && std::abs(energy - result.energy) < 1e-11 * std::abs(energy);
    result.energy = energy, ++result.iterations;
    // Long molecules swing between two densities: then take half of each.
    const double old = result.iterations > 20 ? 0.5 : 0;
    for (std::size_t e = 0; e < n * n; ++e)
      d.values[e] = old * d.values[e] + (1 - old) * next.values[e];
  }
  return result;
}

/// The two-electron part by all integrals, none of which is taken for another: n^4 of them, kept.
class all_integrals {
 public:
  explicit all_integrals(const system& s) : n_(s.size()), values_(n_ * n_ * n_ * n_) {
    std::size_t e = 0;
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j)
        for (std::size_t k = 0; k < n_; ++k)
          for (std::size_t l = 0; l < n_; ++l) values_[e++] = s.pair(i, j).repulsion(s.pair(k, l));
  }
  square operator()(const square& d) const {
    square g(n_);
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j)
        for (std::size_t k = 0; k < n_; ++k)
          for (std::size_t l = 0; l < n_; ++l)
            g(i, j) += d(k, l) * (2 * at(i, j, k, l) - at(i, k, j, l));
    return g;
  }

 private:
  double at(std::size_t i, std::size_t j, std::size_t k, std::size_t l) const {
    return values_[((i * n_ + j) * n_ + k) * n_ + l];
  }
  std::size_t n_;
  std::vector<double> values_;
};

}  // namespace scf_program
