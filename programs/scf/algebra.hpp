// Small dense matrices on one rank, and their eigenvectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace scf_program {

struct square {
  explicit square(std::size_t n = 0) : n(n), values(n * n) {}
  double& operator()(std::size_t i, std::size_t j) { return values[i * n + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values[i * n + j]; }

  std::size_t n;
  std::vector<double> values;
};

inline square product(const square& a, const square& b) {
  square c(a.n);
  for (std::size_t i = 0; i < a.n; ++i)
    for (std::size_t k = 0; k < a.n; ++k)
      for (std::size_t j = 0; j < a.n; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

/// Of a symmetric matrix, by Jacobi's rotations: eigenvalues in ascending order, and eigenvectors
/// as columns.
struct eigen {
  std::vector<double> values;
  square vectors;

  explicit eigen(square a) : vectors(a.n) {
    const std::size_t n = a.n;
    square v(n);
    for (std::size_t i = 0; i < n; ++i) v(i, i) = 1;
    for (int sweep = 0; sweep < 60; ++sweep) {
      double rest = 0;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < i; ++j) rest += a(i, j) * a(i, j);
      if (rest < 1e-26) break;
      for (std::size_t p = 0; p < n; ++p)
        for (std::size_t q = p + 1; q < n; ++q) rotate(a, v, p, q);
    }
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t x, std::size_t y) { return a(x, x) < a(y, y); });
    for (std::size_t k = 0; k < n; ++k) {
      values.push_back(a(order[k], order[k]));
      for (std::size_t i = 0; i < n; ++i) vectors(i, k) = v(i, order[k]);
    }
  }

 private:
  static void rotate(square& a, square& v, std::size_t p, std::size_t q) {
    if (std::abs(a(p, q)) < 1e-300) return;
    const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
    const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
    const double c = 1 / std::sqrt(t * t + 1), s = t * c;
    for (std::size_t k = 0; k < a.n; ++k) {
      const double x = a(k, p), y = a(k, q);
      a(k, p) = c * x - s * y, a(k, q) = s * x + c * y;
    }
    for (std::size_t k = 0; k < a.n; ++k) {
      const double x = a(p, k), y = a(q, k);
      a(p, k) = c * x - s * y, a(q, k) = s * x + c * y;
    }
    for (std::size_t k = 0; k < a.n; ++k) {
      const double x = v(k, p), y = v(k, q);
      v(k, p) = c * x - s * y, v(k, q) = s * x + c * y;
    }
  }
};

}  // namespace scf_program
