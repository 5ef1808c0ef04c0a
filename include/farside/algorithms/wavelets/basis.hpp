// Alpert's multiwavelets of order k on [0, 1]: Gauss points, scaling functions, two-scale filters
// and derivatives.
//
// phi_i(x) = sqrt(2 i + 1) P_i(2 x - 1), i < k, P being Legendre's polynomials. The 2k rows of
//
//   HG = ( h0 h1 )     h0_ij = 2^(-1/2) int phi_i(y / 2) phi_j(y) dy, h1_ij = (-1)^(i + j) h0_ij
//        ( g0 g1 )     g: an orthonormal basis of what is left of the polynomials of degree < 2k on both halves
//
// are orthonormal, so that HG turns the coefficients of two halves into those of the whole and the
// details, and its transpose turns them back. All of it is computed in long double, and rounded
// once.
//
// Everything is local.
#pragma once

#include <farside/algorithms/wavelets/tensor_products.hpp>

#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::wavelets {

/// The largest order k that is offered: of polynomials of degree 29.
inline constexpr std::size_t largest_order = 30;

namespace detail {

using long_vector = std::vector<long double>;

/// P_0(x) ... P_(n-1)(x), orthonormal on [0, 1]: phi_i at y.
template <class T>
void scaling_functions(std::size_t n, T y, T* to) {
  const T x = 2 * y - 1;
  T before = 0, now = 1;
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = std::sqrt(static_cast<T>(2 * i + 1)) * now;
    const T next =
        (static_cast<T>(2 * i + 1) * x * now - static_cast<T>(i) * before) / static_cast<T>(i + 1);
    before = std::exchange(now, next);
  }
}

/// The points and weights of Gauss and Legendre on [0, 1].
struct gauss_points {
  long_vector x, w;

  explicit gauss_points(std::size_t n) : x(n), w(n) {
    for (std::size_t i = 0; i < (n + 1) / 2; ++i) {
      long double z = std::cos(std::numbers::pi_v<long double> *
                               (static_cast<long double>(i) + 0.75L) /
                               (static_cast<long double>(n) + 0.5L)),
                  slope = 1;
      for (int round = 0; round < 12; ++round) {
        long double before = 0, now = 1;
        for (std::size_t j = 0; j < n; ++j) {
          const auto d = static_cast<long double>(j);
          before = std::exchange(now, ((2 * d + 1) * z * now - d * before) / (d + 1));
        }
        slope = static_cast<long double>(n) * (z * now - before) / (z * z - 1);
        z -= now / slope;
      }
      const long double weight = 1 / ((1 - z * z) * slope * slope);
      x[i] = (1 - z) / 2, x[n - 1 - i] = (1 + z) / 2;
      w[i] = w[n - 1 - i] = weight;
    }
  }
};

/// HG, row by row.
inline std::vector<long_vector> two_scale_rows(std::size_t k) {
  const gauss_points gauss(2 * k);
  std::vector<long_vector> rows(2 * k, long_vector(2 * k));
  // Row m of 2k: phi_m on both halves, by the functions of the halves. The first k are h, the
  // others become g.
  long_vector whole(2 * k), half(k);
  for (std::size_t p = 0; p < gauss.x.size(); ++p) {
    scaling_functions(k, gauss.x[p], half.data());
    for (std::size_t upper = 0; upper < 2; ++upper) {
      scaling_functions(2 * k, (gauss.x[p] + static_cast<long double>(upper)) / 2, whole.data());
      for (std::size_t m = 0; m < 2 * k; ++m)
        for (std::size_t j = 0; j < k; ++j)
          rows[m][upper * k + j] +=
              gauss.w[p] * whole[m] * half[j] / std::numbers::sqrt2_v<long double>;
    }
  }
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j)
      rows[i][k + j] = (i + j) % 2 == 0 ? rows[i][j] : -rows[i][j];
  auto dot = [&](const long_vector& a, const long_vector& b) {
    long double sum = 0;
    for (std::size_t j = 0; j < 2 * k; ++j) sum += a[j] * b[j];
    return sum;
  };
  // Gram and Schmidt. What is left of a row is small where k is large: one pass leaves rounding
  // errors, three do not. Each begins with a row that has its symmetry, which rounding errors have
  // not.
  for (std::size_t m = k; m < 2 * k; ++m) {
    auto mirror = [&] {
      for (std::size_t j = 0; j < k; ++j)
        rows[m][k + j] = (m + j) % 2 == 0 ? rows[m][j] : -rows[m][j];
    };
    for (int pass = 0; pass < 3; ++pass) {
      mirror();
      for (std::size_t e = 0; e < m; ++e) {
        const long double c = dot(rows[m], rows[e]);
        for (std::size_t j = 0; j < 2 * k; ++j) rows[m][j] -= c * rows[e][j];
      }
      const long double norm = std::sqrt(dot(rows[m], rows[m]));
      for (auto& x : rows[m]) x /= norm;
    }
    std::size_t first = 0;
    while (std::abs(rows[m][first]) < 1e-14L) ++first;
    if (rows[m][first] < 0)
      for (auto& x : rows[m]) x = -x;
    mirror();
  }
  return rows;
}

}  // namespace detail

/// All tables of one order. Made once, it is only read: several threads may share it.
class basis {
 public:
  /// k from 1 to largest_order. Local; costs about 40 k^3 operations.
  explicit basis(std::size_t k)
      : order_(checked(k)),
        to_coefficients_(k, k),
        to_values_(k, k),
        filter_(2 * k, 2 * k),
        unfilter_(2 * k, 2 * k),
        down_{{k, k}, {k, k}},
        from_lower_(k, k),
        from_upper_(k, k),
        own_{{k, k}, {k, k}, {k, k}, {k, k}} {
    const detail::gauss_points gauss(k);
    detail::long_vector phi(k);
    for (std::size_t m = 0; m < k; ++m) {
      points_.push_back(static_cast<double>(gauss.x[m]));
      detail::scaling_functions(k, gauss.x[m], phi.data());
      for (std::size_t i = 0; i < k; ++i) {
        to_coefficients_.at(m, i) = static_cast<double>(gauss.w[m] * phi[i]);
        to_values_.at(i, m) = static_cast<double>(phi[i]);
      }
    }
    const auto rows = detail::two_scale_rows(k);
    for (std::size_t i = 0; i < 2 * k; ++i)
      for (std::size_t j = 0; j < 2 * k; ++j) {
        filter_.at(j, i) = unfilter_.at(i, j) = static_cast<double>(rows[i][j]);
        if (i < k) down_[j / k].at(i, j % k) = static_cast<double>(rows[i][j]);
      }
    make_derivative();
  }

  /// k. Local; no communication.
  std::size_t order() const { return order_; }
  /// Gauss points of [0, 1]. Local; no communication.
  const std::vector<double>& points() const { return points_; }
  /// phi_0(x) ... phi_(k-1)(x). Local; no communication.
  void scaling(double x, double* to) const { detail::scaling_functions(order_, x, to); }

  /// Matrices as far::wavelets::transform takes them: row i says what becomes of element i. Values
  /// at Gauss points to coefficients, and back. Local; no communication.
  const factor& to_coefficients() const { return to_coefficients_; }
  const factor& to_values() const { return to_values_; }
  /// Of 2k: children to (s | d), and back. Local; no communication.
  const factor& filter() const { return filter_; }
  const factor& unfilter() const { return unfilter_; }
  /// s of a box to s of its lower (0) or upper (1) half, where d = 0. Local; no communication.
  const factor& down(std::size_t half) const { return down_[half]; }

  /// The derivative of a box of side 1, r = from_lower s_(l-1) + own s_l + from_upper s_(l+1).
  /// `own` has other forms where there is no neighbour. Local; no communication.
  const factor& from_lower() const { return from_lower_; }
  const factor& from_upper() const { return from_upper_; }
  const factor& own(bool has_lower, bool has_upper) const {
    return own_[(has_lower ? 0 : 1) + (has_upper ? 0 : 2)];
  }

 private:
  static std::size_t checked(std::size_t k) {
    if (k < 1 || k > largest_order)
      far::detail::raise("a wavelet basis of order k = ", k, " was asked for. k is from 1 to ",
                         largest_order, ": polynomials of degree k - 1 in each box.");
    return k;
  }

  /// Weak derivatives: integration by parts in each box, and the mean of both sides at borders; at
  /// a free border of [0, 1], the value of the box itself.
  void make_derivative() {
    for (std::size_t i = 0; i < order_; ++i)
      for (std::size_t j = 0; j < order_; ++j) {
        const double gamma = std::sqrt(static_cast<double>((2 * i + 1) * (2 * j + 1)));
        const double inner = i > j && (i - j) % 2 == 1 ? 2 : 0;
        const double sign_i = i % 2 == 0 ? 1 : -1, sign_j = j % 2 == 0 ? 1 : -1;
        const double both = sign_i * sign_j;
        from_upper_.at(j, i) = 0.5 * sign_j * gamma;
        from_lower_.at(j, i) = -0.5 * sign_i * gamma;
        own_[0].at(j, i) = 0.5 * (1 - both - 2 * inner) * gamma;
        own_[1].at(j, i) = (0.5 - both - inner) * gamma;
        own_[2].at(j, i) = (1 - 0.5 * both - inner) * gamma;
        own_[3].at(j, i) = (1 - both - inner) * gamma;
      }
  }

  std::size_t order_;
  std::vector<double> points_;
  factor to_coefficients_, to_values_, filter_, unfilter_, down_[2], from_lower_, from_upper_;
  factor own_[4];  // both neighbours, none below, none above, none
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets
