// What is computed in one node of a wavelet tree: pure functions of its data, for trees over ranks
// and in one process.
//
//   s        k^D coefficients of scaling functions, the last axis first in memory
//   (s | d)  (2k)^D: s in the corner where all indices are below k, the details elsewhere
//   children (2k)^D: index b k + i along an axis is i of the lower (b = 0) or upper child
//
// Everything is local.
#pragma once

#include <farside/algorithms/wavelets/basis.hpp>
#include <farside/algorithms/wavelets/tree_box.hpp>

#include <cmath>
#include <concepts>
#include <memory>
#include <span>

namespace far::inline FARSIDE_BACKEND::wavelets {

/// A point of [0, 1]^D.
template <std::size_t D>
using point = std::array<double, D>;

/// A function of one point, or of many at once: f(points, values).
template <class F, std::size_t D>
concept function_of_points = std::is_invocable_r_v<double, F&, const point<D>&> ||
                             std::is_invocable_v<F&, std::span<const point<D>>, std::span<double>>;

/// How a tree is refined where it is made, and cut where it is truncated.
enum class refinement {
  absolute,  ///< details below the threshold count for nothing
  by_level   ///< details of a box of level n below threshold 2^-min(n, 20) do
};

/// The kernels for trees of order k. An object has memory to work in: one thread at a time may use
/// it.
template <std::size_t D>
class kernels {
 public:
  /// Local; costs what basis(k) costs.
  explicit kernels(std::size_t k)
      : basis_(std::make_shared<const basis>(k)),
        small_(tensor_size<D>(k)),
        large_(tensor_size<D>(2 * k)),
        beside_(tensor_room(large_)),
        work_(tensor_room(large_)) {}

  /// The tables of its order, and k. Local; no communication.
  const basis& tables() const { return *basis_; }
  std::size_t order() const { return basis_->order(); }
  /// k^D and (2k)^D. Local; no communication.
  std::size_t small() const { return small_; }
  std::size_t large() const { return large_; }

  /// s of `b`: f at its Gauss points, and one transform. `s` has room for tensor_room(small()).
  /// False if f is infinite or no number at a point, which is put to `bad`. Local; k^D calls of f
  /// and 2 D k^(D+1) flops.
  template <function_of_points<D> F>
  bool project(const tree_box<D>& b, F& f, double* s, point<D>* bad) {
    const std::size_t k = order();
    const double side = std::ldexp(1.0, -static_cast<int>(b.level));
    points_.resize(small_);
    for (std::size_t e = 0; e < small_; ++e) {
      std::size_t rest = e;
      for (std::size_t d = D; d-- > 0; rest /= k)
        points_[e][d] = (static_cast<double>(b.at[d]) + basis_->points()[rest % k]) * side;
    }
    if constexpr (std::is_invocable_v<F&, std::span<const point<D>>, std::span<double>>)
      f(std::span<const point<D>>(points_), std::span<double>(work_.data(), small_));
    else
      for (std::size_t e = 0; e < small_; ++e) work_[e] = f(std::as_const(points_[e]));
    for (std::size_t e = 0; e < small_; ++e)
      if (!std::isfinite(work_[e])) return *bad = points_[e], false;
    along_all(work_.data(), basis_->to_coefficients(), s);
    const double scale = std::pow(side, 0.5 * static_cast<double>(D));
    for (std::size_t e = 0; e < small_; ++e) s[e] *= scale;
    return true;
  }

  /// (s | d) from children. Local; 2 D (2k)^(D+1) flops. `to` has room for tensor_room(large()).
  void filter(const double* children, double* to) { along_all(children, basis_->filter(), to); }
  /// Children from (s | d). Local; costs the same.
  void unfilter(const double* both, double* to) { along_all(both, basis_->unfilter(), to); }
  /// s of child c from s, where d = 0. Local; 2 D k^(D+1) flops. `to` has room for
  /// tensor_room(small()).
  void down(const double* s, std::uint32_t c, double* to) {
    std::array<const factor*, D> halves;
    for (std::size_t d = 0; d < D; ++d) halves[d] = &basis_->down(c >> (D - 1 - d) & 1);
    transform<D>(s, halves, to, beside_.data());
  }
  /// s of a box inside of one whose s this is. Local; costs down() for each level between.
  void down(const tree_box<D>& from, const double* s, const tree_box<D>& box, double* to) {
    std::copy_n(s, small_, work_.data());
    for (std::uint32_t level = from.level + 1; level <= box.level; ++level) {
      down(work_.data(), box.ancestor(level).child_number(), to);
      if (level < box.level) std::copy_n(to, small_, work_.data());
    }
    if (box.level == from.level) std::copy_n(s, small_, to);
  }

  /// Copies s of child c into a block of children, out of it, and s into and out of the corner of
  /// (s | d) (c = 0). Local; costs k^D copies.
  void put_child(double* block, std::uint32_t c, const double* s) const {
    each_row(c, [&](std::size_t in_block, std::size_t in_child) {
      std::copy_n(s + in_child, order(), block + in_block);
    });
  }
  void take_child(const double* block, std::uint32_t c, double* s) const {
    each_row(c, [&](std::size_t in_block, std::size_t in_child) {
      std::copy_n(block + in_block, order(), s + in_child);
    });
  }
  void clear_corner(double* block) const {
    each_row(
        0, [&](std::size_t in_block, std::size_t) { std::fill_n(block + in_block, order(), 0.0); });
  }
  /// ||d||^2 of (s | d). Local; costs a pass.
  double detail_norm2(const double* both) const {
    double all = 0;
    // Not `all - s2`: the details may be a millionth of what they are the rest of.
    const std::size_t k = order(), rows = large_ / (2 * k);
    for (std::size_t row = 0; row < rows; ++row) {
      const double* at = both + row * 2 * k;
      const bool corner = in_corner(row);
      all += norm2(std::span(at + (corner ? k : 0), corner ? k : 2 * k));
    }
    return all;
  }
  static double norm2(std::span<const double> x) {
    double sum = 0;
    for (double e : x) sum += e * e;
    return sum;
  }
  static double dot(std::span<const double> x, std::span<const double> y) {
    double sum = 0;
    for (std::size_t e = 0; e < x.size(); ++e) sum += x[e] * y[e];
    return sum;
  }

  /// The value at x of the function whose s in leaf `b` this is. Local; k^D multiplications.
  double value(const tree_box<D>& b, const double* s, const point<D>& x) const {
    std::array<std::array<double, largest_order>, D> phi;
    const double boxes = std::ldexp(1.0, static_cast<int>(b.level));
    for (std::size_t d = 0; d < D; ++d)
      basis_->scaling(x[d] * boxes - static_cast<double>(b.at[d]), phi[d].data());
    const std::size_t k = order();
    // The last axis first: from k^D numbers to k^(D-1), and so on.
    std::array<double, largest_order> partial{};
    double sum = 0;
    const std::size_t rows = small_ / k;
    for (std::size_t row = 0; row < rows; ++row) {
      double along = 0;
      for (std::size_t i = 0; i < k; ++i) along += s[row * k + i] * phi[D - 1][i];
      if constexpr (D == 1) {
        sum = along;
      } else if constexpr (D == 2) {
        sum += along * phi[0][row];
      } else {
        partial[row / k] += along * phi[1][row % k];
      }
    }
    if constexpr (D == 3)
      for (std::size_t i = 0; i < k; ++i) sum += partial[i] * phi[0][i];
    return std::pow(boxes, 0.5 * static_cast<double>(D)) * sum;
  }

  /// r = the derivative along an axis in box `b` with s, from those of its neighbours there (null
  /// at a border, which is free). Local; up to 6 k^(D+1) flops.
  void derive(const tree_box<D>& b, std::size_t axis, const double* lower, const double* s,
              const double* upper, double* r) const {
    const double scale = std::ldexp(1.0, static_cast<int>(b.level));
    std::fill_n(r, small_, 0.0);
    if (lower != nullptr) add_along<D>(lower, basis_->from_lower(), axis, scale, r);
    add_along<D>(s, basis_->own(lower != nullptr, upper != nullptr), axis, scale, r);
    if (upper != nullptr) add_along<D>(upper, basis_->from_upper(), axis, scale, r);
  }

 private:
  void along_all(const double* t, const factor& a, double* to) {
    std::array<const factor*, D> all;
    all.fill(&a);
    transform<D>(t, all, to, beside_.data());
  }

  /// Whether row `row` of a block begins in the corner of s.
  bool in_corner(std::size_t row) const {
    const std::size_t k = order();
    if constexpr (D == 1)
      return true;
    else if constexpr (D == 2)
      return row < k;
    else
      return row / (2 * k) < k && row % (2 * k) < k;
  }

  /// f(where in a block of children, where in the child) for each row of child c.
  template <class F>
  void each_row(std::uint32_t c, F f) const {
    const std::size_t k = order();
    const std::size_t x = k * (c >> (D - 1) & 1), last = k * (c & 1);
    if constexpr (D == 1) {
      f(x, 0);
    } else if constexpr (D == 2) {
      for (std::size_t i = 0; i < k; ++i) f((x + i) * 2 * k + last, i * k);
    } else {
      const std::size_t y = k * (c >> 1 & 1);
      for (std::size_t i = 0; i < k; ++i)
        for (std::size_t j = 0; j < k; ++j)
          f(((x + i) * 2 * k + y + j) * 2 * k + last, (i * k + j) * k);
    }
  }

  std::shared_ptr<const basis> basis_;
  std::size_t small_, large_;
  std::vector<double> beside_, work_;
  std::vector<point<D>> points_;
};

/// When details are too small to be kept.
struct tolerance {
  double threshold = 1e-6;
  refinement mode = refinement::absolute;
  /// For a box of that level. Local; no communication.
  double at(std::uint32_t level) const {
    return mode == refinement::absolute
               ? threshold
               : threshold *
                     std::min(1.0, std::ldexp(1.0, -static_cast<int>(std::min(level, 20u))));
  }
};

}  // namespace far::inline FARSIDE_BACKEND::wavelets
