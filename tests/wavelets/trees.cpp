// Wavelet trees over ranks, against trees in one process.
#include "serial_tree.hpp"

#include <farside/algorithms/wavelets.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>

#include "harness.hpp"

namespace wavelet_tests {

namespace wavelets = far::wavelets;

namespace {

template <std::size_t D>
double gauss(const wavelets::point<D>& x) {
  double r2 = 0;
  for (double e : x) r2 += (e - 0.5) * (e - 0.5);
  return 5 * std::exp(-300 * r2);
}
/// Nothing about it is symmetric.
template <std::size_t D>
double hill(const wavelets::point<D>& x) {
  double r2 = 0;
  for (double e : x) r2 += (e - 0.3) * (e - 0.3);
  return std::exp(-80 * r2) + x[0];
}

template <std::size_t D>
typename serial::tree<D>::settings as_serial(const wavelets::tree_options<D>& with) {
  return {with.k, {with.threshold, with.mode}, with.initial_level, std::min(with.max_level, 20u)};
}

/// All of this rank's nodes are those of `expected`, and all ranks together have as many.
template <std::size_t D>
void check_same(const wavelets::function<D>& f, const serial::tree<D>& expected, double room) {
  double difference = 0;
  std::size_t known = 0, same = 0, nodes = 0;
  f.for_each_node([&](const auto& box, const auto& node) {
    ++nodes;
    auto found = expected.nodes().find(box);
    if (found == expected.nodes().end()) return;
    ++known;
    const auto& other = found->second;
    if (other.leaf != node.leaf || other.values.size() != node.values.size()) return;
    ++same;
    for (std::size_t e = 0; e < node.values.size(); ++e)
      difference = std::max(difference, std::abs(node.values[e] - other.values[e]));
    CHECK_EQ(f.placement()(box, far::nprocs()), far::rank());
  });
  CHECK_EQ(known, nodes);
  CHECK_EQ(same, nodes);
  CHECK_EQ(far::all_reduce(nodes), expected.nodes().size());
  CHECK(difference <= room);
}

template <std::size_t D, class F>
void whole_course(F f, const wavelets::tree_options<D>& with, double coarser) {
  auto expected = serial::tree<D>::project(f, as_serial(with));
  auto tree = wavelets::function<D>::project(f, with);
  check_same(tree, expected, 0);
  CHECK(std::abs(tree.norm() / std::sqrt(expected.norm2()) - 1) < 1e-14);

  for (std::size_t axis = 0; axis < D; ++axis) {
    auto slope = tree.derivative(axis);
    check_same(slope, expected.derivative(axis), 1e-12);
  }
  std::vector<wavelets::point<D>> points;
  for (int i = 0; i < 40; ++i) {
    wavelets::point<D> x;
    for (std::size_t d = 0; d < D; ++d)
      x[d] = std::fmod(0.37 * i + 0.11 * static_cast<double>(d + far::rank()), 1.0);
    points.push_back(x);
  }
  points.push_back({});
  points.emplace_back().fill(1);
  const auto values = tree.evaluate(points);
  for (std::size_t i = 0; i < points.size(); ++i)
    CHECK(std::abs(values[i] - expected.at(points[i])) < 1e-12);
  far::barrier();

  tree.compress();
  expected.compress();
  check_same(tree, expected, 1e-13);
  CHECK(std::abs(tree.norm() / std::sqrt(expected.norm2()) - 1) < 2e-13);
  CHECK(std::abs(tree.inner(tree) / expected.norm2() - 1) < 2e-13);
  tree.truncate(coarser);
  expected.truncate(coarser);
  check_same(tree, expected, 1e-13);
  tree.reconstruct();
  expected.reconstruct();
  check_same(tree, expected, 1e-13);
}

/// The table of sizes: nodes of a tree and of its derivative.
template <std::size_t D>
void size_row(std::size_t k, double eps, std::size_t nodes, std::size_t of_derivative) {
  auto f = wavelets::function<D>::project(gauss<D>, {.k = k, .threshold = eps});
  CHECK_EQ(f.census().nodes, nodes);
  CHECK_EQ(f.derivative(D - 1).census().nodes, of_derivative);
}

/// The norm is the one that a formula has, the same in both forms of a tree; a tree comes back as
/// it was; the derivative is as near as its bound says.
template <std::size_t D>
void accuracy_row(double eps) {
  const std::size_t k = 9;
  auto f = wavelets::function<D>::project(gauss<D>, {.k = k, .threshold = eps});
  const double a = 300,
               of_axis = std::sqrt(std::numbers::pi / (2 * a)) * std::erf(std::sqrt(a / 2));
  const double right = 5 * std::pow(of_axis, D / 2.0), norm = f.norm();
  CHECK(std::abs(norm - right) < eps);

  std::map<std::vector<std::uint32_t>, std::vector<double>> before;
  auto name_of = [](const auto& box) {
    std::vector<std::uint32_t> name(box.at.begin(), box.at.end());
    name.push_back(box.level);
    return name;
  };
  f.for_each_leaf([&](const auto& box, std::span<double> s) {
    before[name_of(box)].assign(s.begin(), s.end());
  });
  f.compress();
  CHECK(std::abs(f.norm() / norm - 1) < 2e-13);
  f.reconstruct();
  CHECK(std::abs(f.norm() / norm - 1) < 2e-13);
  double difference = 0;
  std::size_t leaves = 0;
  f.for_each_leaf([&](const auto& box, std::span<double> s) {
    ++leaves;
    const auto& old = before[name_of(box)];
    CHECK_EQ(old.size(), s.size());
    for (std::size_t i = 0; i < std::min(s.size(), old.size()); ++i)
      difference += (s[i] - old[i]) * (s[i] - old[i]);
  });
  CHECK_EQ(leaves, before.size());
  CHECK(std::sqrt(far::all_reduce(difference)) < 1e-14 * norm);

  // The norm of the error of the derivative, at the middles of small boxes.
  auto slope = f.derivative(0);
  constexpr std::size_t side = D == 1 ? 1000 : D == 2 ? 64 : 20;
  std::size_t all = 1;
  for (std::size_t d = 0; d < D; ++d) all *= side;
  std::vector<wavelets::point<D>> points;
  for (std::size_t i = far::rank(); i < all; i += far::nprocs()) {
    std::size_t rest = i;
    for (double& e : points.emplace_back()) {
      e = (static_cast<double>(rest % side) + 0.5) / side;
      rest /= side;
    }
  }
  const auto values = slope.evaluate(points);
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double exact = -2 * a * (points[i][0] - 0.5) * gauss<D>(points[i]);
    error += (values[i] - exact) * (values[i] - exact);
    largest = std::max(largest, std::abs(values[i] - exact));
  }
  error = std::sqrt(far::all_reduce(error) / static_cast<double>(all));
  const auto deepest = static_cast<double>(f.census().deepest);
  const double bound = static_cast<double>(k * k) * std::exp2(deepest) * eps;
  CHECK(error < bound);
  CHECK(error > 1e-6 * bound);  // it is measured
  // Single points, where a polynomial of order k may be k^D 2^(n D / 2) times its norm.
  CHECK(largest < bound * std::pow(k, D) * std::exp2(deepest * D / 2.0));
  far::barrier();
}

}  // namespace

FAR_TEST(one_dimension) {
  whole_course<1>(gauss<1>, {.k = 9, .threshold = 1e-8}, 1e-3);
  whole_course<1>(hill<1>,
                  {.k = 5,
                   .threshold = 1e-6,
                   .mode = wavelets::refinement::by_level,
                   .placement = wavelets::box_placement<1>::by_hash()},
                  1e-3);
  whole_course<1>(hill<1>, {.k = 1, .threshold = 1e-2, .initial_level = 0, .max_level = 7}, 1e-1);
}
FAR_TEST(two_dimensions) {
  whole_course<2>(hill<2>, {.k = 6, .threshold = 1e-5}, 1e-2);
  whole_course<2>(gauss<2>,
                  {.k = 4, .threshold = 1e-3, .placement = wavelets::box_placement<2>::by_hash()},
                  1e-1);
}
FAR_TEST(three_dimensions) {
  whole_course<3>(hill<3>,
                  {.k = 4, .threshold = 1e-3, .placement = wavelets::box_placement<3>::subtrees(2)},
                  1e-2);
}
FAR_TEST(sizes_that_are_known) {
  size_row<1>(9, 1e-4, 11, 15);
  size_row<1>(9, 1e-6, 15, 23);
  size_row<1>(9, 1e-8, 27, 39);
  size_row<1>(9, 1e-10, 43, 55);
  size_row<1>(9, 1e-12, 67, 79);
  size_row<1>(5, 1e-6, 43, 59);
  size_row<2>(9, 1e-4, 37, 53);
  size_row<2>(9, 1e-6, 53, 85);
  size_row<2>(9, 1e-8, 101, 165);
  size_row<2>(9, 1e-10, 229, 325);
  size_row<3>(9, 1e-3, 73, 73);
}
FAR_TEST(larger_sizes_that_are_known) {
  size_row<3>(9, 1e-5, 137, 201);
  size_row<3>(9, 1e-7, 201, 329);
}
FAR_TEST(accuracy) {
  accuracy_row<1>(1e-6);
  accuracy_row<1>(1e-10);
  accuracy_row<2>(1e-8);
  accuracy_row<3>(1e-3);
}
/// Of a polynomial that a box holds exactly, so is the derivative, at every point: also beside boxes
/// of other sizes, and at borders.
FAR_TEST(a_polynomial_has_an_exact_derivative) {
  auto f = wavelets::function<2>::project(
      [](const auto& x) { return (x[0] * x[0] - 2 * x[0]) * x[0] * (1 + x[1]); },
      {.k = 5, .threshold = 1e-3});
  auto uneven = f.map_leaves([](auto& leaf) {
    const auto& box = leaf.box();
    if (box.level < 5 && box.at[0] == 1u << (box.level - 1)) return wavelets::leaf_step::refine;
    std::ranges::copy(leaf.values(), leaf.result().begin());
    return wavelets::leaf_step::done;
  });
  CHECK_EQ(uneven.census().deepest, 5u);
  auto slope = uneven.derivative(0);
  double largest = 0;
  for (int i = static_cast<int>(far::rank()); i <= 200; i += static_cast<int>(far::nprocs())) {
    const double x = i / 200.0, y = 0.37;
    const double exact = ((3 * x - 4) * x) * (1 + y);
    largest = std::max(largest, std::abs(slope.evaluate({x, y}) - exact));
  }
  CHECK(largest < 1e-11);
  far::barrier();
}
FAR_TEST(a_tree_of_one_node) {
  auto f = wavelets::function<2>::project([](const auto& x) { return 2 * x[0]; },
                                          {.k = 2, .threshold = 1e-9, .initial_level = 0});
  CHECK_EQ(f.census().nodes, 1u);
  CHECK(std::abs(f.evaluate({0.3, 0.9}) - 0.6) < 1e-14);
  far::barrier();
  f.compress();
  auto g = wavelets::function<2>::project(hill<2>, {.k = 2, .threshold = 1e-2});
  CHECK_THROWS(f.inner(g), "inner of a tree that is not compressed");
  g.compress();
  CHECK(std::abs(f.inner(g) - g.inner(f)) < 1e-14);
  f.reconstruct();
  auto slope = f.derivative(0);
  CHECK(std::abs(slope.evaluate({0.3, 0.9}) - 2) < 1e-13);
  far::barrier();
}
FAR_TEST(moves_and_balances) {
  const wavelets::tree_options<2> with{.k = 5, .threshold = 1e-5};
  auto f = wavelets::function<2>::project(hill<2>, with);
  auto expected = serial::tree<2>::project(hill<2>, as_serial(with));
  f.move_to(wavelets::box_placement<2>::by_hash());
  check_same(f, expected, 0);
  f.balance();
  check_same(f, expected, 0);
  auto slope = f.derivative(1);
  check_same(slope, expected.derivative(1), 1e-12);
  slope.balance();
  CHECK_EQ(slope.census().nodes, expected.derivative(1).nodes().size());
  CHECK_THROWS(wavelets::box_placement<2>::table(3, {0, 0}), "by a table of 2 ranks");
}
/// A rank that is well within its subtrees goes on when the other one is within its own: a wait that
/// has no end if ranks take turns.
FAR_TEST(ranks_work_at_the_same_time) {
  if (far::nprocs() != 2) SKIP("how much each rank has to do is known of two");
  constexpr std::uint64_t of_first_levels =
      (1 + 4 + 16 + 64 + 256) * 4 * 4;  // boxes, children, points
  far::ptr<std::uint64_t> within;       // how many ranks have made more values than that
  if (far::rank() == 0) within = far::make<std::uint64_t>(0);
  within = far::broadcast(within, 0);
  std::uint64_t made = 0;
  auto f = [&](const wavelets::point<2>& x) {
    if (++made == of_first_levels) far::fetch_add(within, std::uint64_t{1});
    while (made > of_first_levels + 1000 && far::atomic_load(within) < 2) far::progress();
    return x[0];
  };
  auto tree = wavelets::function<2>::project(f, {.k = 2, .threshold = 0, .max_level = 6});
  CHECK_EQ(tree.census().nodes, (4096u * 4 - 1) / 3);
  far::barrier();
  if (far::rank() == 0) far::dealloc(within);
}

FAR_TEST(own_operators) {
  const wavelets::tree_options<1> with{.k = 4, .threshold = 1e-4};
  auto f = wavelets::function<1>::project(hill<1>, with);
  auto twice = f.map_leaves([](auto& leaf) {
    for (std::size_t i = 0; i < leaf.result().size(); ++i) leaf.result()[i] = 2 * leaf.values()[i];
    return wavelets::leaf_step::done;
  });
  CHECK(std::abs(twice.norm() / f.norm() - 2) < 1e-14);
  // All leaves as small as the smallest ones.
  const std::uint32_t deepest = f.census().deepest;
  auto even = f.map_leaves([=](auto& leaf) {
    if (leaf.box().level < deepest) return wavelets::leaf_step::refine;
    std::ranges::copy(leaf.values(), leaf.result().begin());
    return wavelets::leaf_step::done;
  });
  CHECK_EQ(even.census().nodes, (2u << deepest) - 1);
  CHECK(std::abs(even.norm() / f.norm() - 1) < 1e-14);
  f.for_each_leaf([](const auto&, std::span<double> s) {
    for (double& e : s) e *= 3;
  });
  far::barrier();
  CHECK(std::abs(f.norm() / even.norm() - 3) < 1e-13);
}
FAR_TEST(files) {
  const std::string path = far::broadcast(
      (std::filesystem::temp_directory_path() / far::text("wavelets-", getpid())).string(), 0);
  const wavelets::tree_options<2> with{.k = 4, .threshold = 1e-4};
  auto f = wavelets::function<2>::project(hill<2>, with);
  f.compress();
  f.save(path);
  auto read = [&] {
    std::ifstream in(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string bytes = read();
  auto g = wavelets::function<2>::load(
      path, {.placement = wavelets::box_placement<2>::by_hash(), .name = "loaded"});
  CHECK(g.compressed() && g.settings().k == 4 && g.settings().threshold == 1e-4);
  auto expected = serial::tree<2>::project(hill<2>, as_serial(with));
  expected.compress();
  check_same(g, expected, 1e-13);
  g.save(path);
  CHECK(read() == bytes);
  CHECK_THROWS(wavelets::function<3>::load(path), "of 2 dimensions, and not of 3");
  auto damage = [&](const char* words, auto change) {
    far::barrier();
    if (far::rank() == 0) {
      std::string other = bytes;
      change(other);
      std::ofstream(path, std::ios::binary) << other;
    }
    far::barrier();
    CHECK_THROWS(wavelets::function<2>::load(path), words);
  };
  damage("it has been cut off", [](std::string& s) { s.resize(s.size() - 8); });
  damage("no file of a wavelet tree", [](std::string& s) { s.resize(20); });
  damage("no file of a wavelet tree", [](std::string& s) { s[3] = 'X'; });
  damage("its header has changed", [](std::string& s) { s[17] ^= 1; });
  damage("records of its nodes have changed", [](std::string& s) { s[100] ^= 1; });
  damage("have changed", [](std::string& s) { s[s.size() - 3] ^= 1; });
  CHECK_THROWS(f.save("/nowhere/at/all"), "cannot save /nowhere/at/all");
  far::barrier();
  if (far::rank() == 0) std::filesystem::remove(path);
}
FAR_TEST(wrong_uses) {
  using tree = wavelets::function<1>;
  CHECK_THROWS(tree::project(gauss<1>, {.k = 0}), "its order k = 0");
  CHECK_THROWS(tree::project(gauss<1>, {.k = 100}), "its order k = 100");
  CHECK_THROWS(tree::project(gauss<1>, {.threshold = NAN}), "the threshold nan");
  CHECK_THROWS(tree::project(gauss<1>, {.threshold = -1}), "the threshold -1");
  CHECK_THROWS(tree::project(gauss<1>, {.threshold = 0}), "Give a max_level");
  CHECK_THROWS(tree::project(gauss<1>, {.initial_level = 5, .max_level = 4}),
               "deeper than max_level 4");
  CHECK_THROWS(tree::project(gauss<1>, {.max_level = 31}), "max_level 31");
  CHECK_THROWS(tree::project([](const auto& x) { return x[0] > 0.7 ? NAN : 1; }, {}),
               "the function is infinite or no number at (0.7");
  auto f = tree::project(gauss<1>);
  CHECK_THROWS(f.derivative(1), "derivative along axis 1");
  CHECK_THROWS(f.evaluate({1.5}), "evaluate at a coordinate 1.5");
  CHECK_THROWS(f.truncate(NAN), "truncate below nan");
  f.compress();
  CHECK_THROWS(f.derivative(0), "map_leaves of a tree that is compressed");
  CHECK_THROWS(f.evaluate({0.5}), "evaluate of a tree that is compressed");
}

}  // namespace wavelet_tests
