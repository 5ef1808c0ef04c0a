// Integrals of s Gaussians. The product of two of them is one more, at a place between, so that
// everything comes down to pairs: with p the sum of both exponents, mu what is left of them, and R
// the distance,
//
//   overlap     (pi / p)^1.5 exp(-mu R^2)
//   kinetic     mu (3 - 2 mu R^2) overlap
//   nucleus C   -Z 2 pi / p exp(-mu R^2) F(p |P - C|^2)
//   repulsion   2 pi^2.5 / (p q sqrt(p + q)) exp exp F(p q / (p + q) |P - Q|^2)
//
// F is the Boys function of order zero: the integral of exp(-t x^2) over x from 0 to 1.
#pragma once

#include "molecule.hpp"

#include <cmath>
#include <numbers>
#include <vector>

namespace scf_program {

inline double boys(double t) {
  if (t < 1e-3) return 1 - t / 3 + t * t / 10 - t * t * t / 42;
  return 0.5 * std::sqrt(std::numbers::pi / t) * std::erf(std::sqrt(t));
}

inline double squared_distance(const place& a, const place& b) {
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/// The products of the Gaussians of two functions.
struct pair_of_functions {
  struct product {
    double p, factor;  ///< factor: coefficients and exp(-mu R^2)
    place at;
    double mu, r2;
  };
  std::vector<product> products;
  double bound = 0;  ///< the root of its repulsion with itself: no integral exceeds bound x bound

  pair_of_functions(const function& a, const function& b) {
    const double r2 = squared_distance(a.at, b.at);
    for (std::size_t i = 0; i < a.exponents.size(); ++i)
      for (std::size_t j = 0; j < b.exponents.size(); ++j) {
        const double x = a.exponents[i], y = b.exponents[j], p = x + y, mu = x * y / p;
        place at;
        for (int k = 0; k < 3; ++k) at[k] = (x * a.at[k] + y * b.at[k]) / p;
        products.push_back(
            {p, a.coefficients[i] * b.coefficients[j] * std::exp(-mu * r2), at, mu, r2});
      }
    bound = std::sqrt(std::abs(repulsion(*this)));
  }

  double overlap() const {
    double sum = 0;
    for (const product& g : products) sum += g.factor * std::pow(std::numbers::pi / g.p, 1.5);
    return sum;
  }
  /// Kinetic energy, and that in the field of the nuclei.
  double one_electron(const molecule& m) const {
    double sum = 0;
    for (const product& g : products) {
      sum += g.factor * g.mu * (3 - 2 * g.mu * g.r2) * std::pow(std::numbers::pi / g.p, 1.5);
      for (const atom& c : m.atoms)
        sum -= g.factor * c.charge * 2 * std::numbers::pi / g.p *
               boys(g.p * squared_distance(g.at, c.at));
    }
    return sum;
  }
  double repulsion(const pair_of_functions& other) const {
    const double all = 2 * std::pow(std::numbers::pi, 2.5);
    double sum = 0;
    for (const product& g : products)
      for (const product& h : other.products) {
        const double both = g.p + h.p;
        sum += g.factor * h.factor * all / (g.p * h.p * std::sqrt(both)) *
               boys(g.p * h.p / both * squared_distance(g.at, h.at));
      }
    return sum;
  }
};

}  // namespace scf_program
