// Multiwavelets: their tables, and trees in one process, by numbers that are known.
#include <farside/algorithms/wavelets/kernels.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "../wavelets/serial_tree.hpp"
#include "check.hpp"

namespace {

using far::wavelets::basis;
using far::wavelets::factor;

void tables() {
  for (std::size_t k = 1; k <= far::wavelets::largest_order; ++k) {
    const basis b(k);
    // HG^T HG = 1 = HG HG^T; the two forms are transposes of each other.
    double worst = 0, transposed = 0;
    const factor &f = b.filter(), &u = b.unfilter();
    for (std::size_t i = 0; i < 2 * k; ++i)
      for (std::size_t j = 0; j < 2 * k; ++j) {
        long double rows = 0, columns = 0;
        for (std::size_t e = 0; e < 2 * k; ++e) {
          rows += static_cast<long double>(u.at(i, e)) * u.at(j, e);
          columns += static_cast<long double>(f.at(i, e)) * f.at(j, e);
        }
        const long double one = i == j ? 1 : 0;
        worst = std::max({worst, static_cast<double>(std::abs(rows - one)),
                          static_cast<double>(std::abs(columns - one))});
        transposed = std::max(transposed, std::abs(f.at(i, j) - u.at(j, i)));
      }
    if (worst > 2.2e-16) std::printf("k = %zu: HG^T HG is wrong by %g\n", k, worst);
    CHECK(worst <= 2.2e-16 && transposed == 0);
    // Signs, and symmetries.
    for (std::size_t i = 0; i < k; ++i) {
      std::size_t first = 0;
      while (std::abs(u.at(k + i, first)) < 1e-14) ++first;
      CHECK(u.at(k + i, first) > 0);
      for (std::size_t j = 0; j < k; ++j) {
        CHECK(u.at(i, k + j) == ((i + j) % 2 == 0 ? 1 : -1) * u.at(i, j));
        CHECK(u.at(k + i, k + j) == ((i + j + k) % 2 == 0 ? 1 : -1) * u.at(k + i, j));
      }
    }
    // Gauss integrates polynomials up to degree 2k - 1.
    for (std::size_t degree = 0; degree < 2 * k; ++degree) {
      double sum = 0;
      for (std::size_t m = 0; m < k; ++m) {  // phi_0 = 1
        sum += b.to_coefficients().at(m, 0) * std::pow(b.points()[m], static_cast<double>(degree));
      }
      CHECK(std::abs(sum - 1.0 / static_cast<double>(degree + 1)) < 1e-15);
    }
  }
  // Haar's.
  const basis haar(1);
  const double h = std::sqrt(0.5);
  CHECK(haar.unfilter().at(0, 0) == h && haar.unfilter().at(0, 1) == h);
  CHECK(haar.unfilter().at(1, 0) == h && haar.unfilter().at(1, 1) == -h);
}

template <std::size_t D>
double gauss(const far::wavelets::point<D>& x) {
  double r2 = 0;
  for (double e : x) r2 += (e - 0.5) * (e - 0.5);
  return 5 * std::exp(-300 * r2);
}

/// One row of the table: how many nodes a tree and its derivative have, and what must hold for every tree.
template <std::size_t D>
void row(std::size_t k, double eps, std::size_t nodes, std::size_t of_derivative) {
  using tree = serial::tree<D>;
  tree f = tree::project(gauss<D>, {.k = k, .keep = {.threshold = eps}});
  tree slope = f.derivative(0);
  if (f.nodes().size() != nodes || slope.nodes().size() != of_derivative)
    std::printf("D = %zu, k = %zu, eps = %g: %zu/%zu nodes, not %zu/%zu\n", D, k, eps,
                f.nodes().size(), slope.nodes().size(), nodes, of_derivative);
  CHECK(f.nodes().size() == nodes);
  CHECK(slope.nodes().size() == of_derivative);
  for (std::size_t axis = 1; axis < D; ++axis)
    CHECK(f.derivative(axis).nodes().size() == of_derivative);

  const double a = 300, exact = 25 * std::pow(std::sqrt(std::acos(-1.0) / (2 * a)) *
                                                  std::erf(std::sqrt(a / 2)),
                                              static_cast<double>(D));
  CHECK(std::abs(std::sqrt(f.norm2()) - std::sqrt(exact)) < 4 * eps);
  std::uint32_t deepest = 0;
  for (const auto& [b, n] : slope.nodes()) deepest = std::max(deepest, b.level);
  double worst = 0, wrong = 0;
  const int points = D == 1 ? 400 : D == 2 ? 30 : 10;
  for (int i = 0; i < (D == 1   ? points
                       : D == 2 ? points * points
                                : points * points * points);
       ++i) {
    far::wavelets::point<D> x;
    int rest = i;
    for (double& e : x) e = (rest % points + 0.37) / points, rest /= points;
    wrong = std::max(wrong, std::abs(f.at(x) - gauss<D>(x)));
    const double off = slope.at(x) + 600 * (x[0] - 0.5) * gauss<D>(x);
    worst += off * off;
  }
  worst = std::sqrt(worst / std::pow(points, D));  // nearly the norm of what is wrong
  const double kk = static_cast<double>(k * k);
  CHECK(wrong < kk * eps * 10);
  if (!(worst < kk * std::ldexp(eps, static_cast<int>(deepest))))
    std::printf("D = %zu, k = %zu, eps = %g: derivative wrong by %g\n", D, k, eps, worst);
  CHECK(worst < kk * std::ldexp(eps, static_cast<int>(deepest)));

  tree other = f;
  other.compress();
  CHECK(std::abs(other.norm2() / f.norm2() - 1) < 2e-13);
  CHECK(std::abs(other.inner(other) / f.norm2() - 1) < 2e-13);
  other.reconstruct();
  CHECK(other.nodes().size() == nodes);
  double difference = 0;
  for (const auto& [b, n] : f.nodes()) {
    const auto& m = other.nodes().at(b);
    CHECK(m.leaf == n.leaf && m.values.size() == n.values.size());
    for (std::size_t e = 0; e < n.values.size(); ++e)
      difference += (n.values[e] - m.values[e]) * (n.values[e] - m.values[e]);
  }
  CHECK(std::sqrt(difference / f.norm2()) < 1e-14);

  other.compress();
  other.truncate(1e3 * eps);
  CHECK(other.nodes().size() <= nodes);
  other.reconstruct();
  CHECK(std::abs(std::sqrt(other.norm2()) - std::sqrt(exact)) < 4e3 * eps);
}

void rows() {
  row<1>(9, 1e-4, 11, 15);
  row<1>(9, 1e-6, 15, 23);
  row<1>(9, 1e-8, 27, 39);
  row<1>(9, 1e-10, 43, 55);
  row<1>(9, 1e-12, 67, 79);
  row<1>(5, 1e-6, 43, 59);
  row<2>(9, 1e-4, 37, 53);
  row<2>(9, 1e-6, 53, 85);
  row<2>(9, 1e-8, 101, 165);
  row<2>(9, 1e-10, 229, 325);
  row<3>(9, 1e-3, 73, 73);
  row<3>(9, 1e-5, 137, 201);
  row<3>(9, 1e-7, 201, 329);
}

/// Polynomials of degree below k are their own projection, and so are their derivatives.
void polynomials() {
  auto f = [](const far::wavelets::point<2>& x) { return x[0] * x[0] * x[1] - 3 * x[1] + 1; };
  auto tree =
      serial::tree<2>::project(f, {.k = 3, .keep = {.threshold = 1e-10}, .initial_level = 3});
  CHECK(tree.nodes().size() == 21);
  auto along_0 = tree.derivative(0), along_1 = tree.derivative(1);
  for (double x = 0; x <= 1; x += 0.125)
    for (double y = 0; y <= 1; y += 0.0625) {
      CHECK(std::abs(tree.at({x, y}) - f({x, y})) < 1e-13);
      CHECK(std::abs(along_0.at({x, y}) - 2 * x * y) < 1e-12);
      CHECK(std::abs(along_1.at({x, y}) - (x * x - 3)) < 1e-12);
    }
}

void boxes() {
  using box = far::wavelets::tree_box<3>;
  box b{3, {1, 6, 7}};
  for (std::uint32_t c = 0; c < box::children; ++c) {
    CHECK(b.child(c).parent() == b && b.child(c).child_number() == c);
    CHECK(b < b.child(c) && !(b.child(c) < b));
    if (c > 0) CHECK(b.child(c - 1) < b.child(c) && b.child(c - 1).child(7) < b.child(c));
    CHECK(b.child(c).number() == 8 * b.number() + c);
  }
  using far::wavelets::side;
  CHECK(!b.neighbour(2, side::upper) && b.neighbour(2, side::lower)->at[2] == 6);
  CHECK(!(box{0, {}}.neighbour(0, side::lower)) && !(box{0, {}}.neighbour(0, side::upper)));
  CHECK((box::around({1, 0, 0.5}, 3) == box{3, {7, 0, 4}}));
}

}  // namespace

int main() {
  boxes();
  tables();
  polynomials();
  rows();
  return verdict("wavelets");
}
