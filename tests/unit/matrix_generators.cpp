// Generators of matrices: permutations are such, parts make up the whole, numbers are distributed
// as they should be.
#include <farside/algorithms/matrix_generators.hpp>

#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

void permutations() {
  for (std::size_t n : {1, 2, 3, 4, 5, 7, 16, 17, 99, 100, 101, 1000, 4096, 5003})
    for (std::uint64_t seed : {1, 2}) {
      far::detail::permutation shuffled(n, seed);
      std::vector<bool> seen(n);
      bool good = true;
      for (std::size_t i = 0; i < n; ++i) {
        std::size_t to = shuffled(i);
        good = good && to < n && !seen[to];
        if (to < n) seen[to] = true;
      }
      CHECK(good);
    }
  // Far beyond what a table could hold.
  const std::size_t large = (std::size_t{1} << 60) + 12345;
  std::set<std::size_t> images;
  for (std::size_t i = 0; i < 1000; ++i) images.insert(far::detail::permutation(large, 7)(i));
  CHECK(images.size() == 1000 && *images.rbegin() < large && *images.rbegin() > large / 2);
  for (std::size_t rows : {1, 2, 5, 13})
    for (std::size_t columns : {1, 3, 8}) {
      std::set<far::matrix_index> places;
      for (std::size_t e = 0; e < rows * columns; ++e)
        places.insert(far::random_entries{rows, columns, rows * columns, 9}.index(e));
      CHECK(places.size() == rows * columns && places.rbegin()->row < rows);
    }
}

/// The sum of (seen - expected)^2 / expected lies where it does for all but one seed in many
/// millions.
template <class Counts>
bool even(const Counts& counts, double expected) {
  double sum = 0, n = 0;
  for (auto count : counts) {
    double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
    n += 1;
  }
  return std::abs(sum - n) < 6 * std::sqrt(2 * n) + 6;
}

void distributions() {
  // Where the first number goes, over many seeds: each place as often.
  std::array<int, 12> images{}, columns{};
  for (std::uint64_t seed = 0; seed < 12000; ++seed) {
    ++images[far::detail::permutation(12, seed)(3)];
    far::random_rows one{1, 12, 3, seed};
    one.row<double>(0, [&](std::size_t c, double) { ++columns[c]; });
  }
  CHECK(even(images, 1000));
  CHECK(even(columns, 3000));  // 3 different ones of 12: the variance is smaller still
  // Pairs of neighbouring numbers.
  std::map<std::pair<std::size_t, std::size_t>, int> pairs;
  for (std::uint64_t seed = 0; seed < 30000; ++seed) {
    far::detail::permutation shuffled(6, seed);
    ++pairs[{shuffled(0), shuffled(1)}];
  }
  std::vector<int> counts;
  for (const auto& [pair, count] : pairs) counts.push_back(count);
  CHECK(counts.size() == 30);
  CHECK(even(counts, 1000));

  // Erdos-Renyi: the number of entries, those of each column, and how many share a row.
  const far::erdos_renyi er{200, 8, 11};
  std::vector<int> of_column(200);
  double entries = 0, squares = 0;
  for (std::size_t r = 0; r < 200; ++r) {
    double row = 0;
    std::size_t before = 0;
    er.row<double>(r, [&](std::size_t c, double) {
      CHECK(c < 200 && (row == 0 || c > before));
      before = c;
      ++of_column[c];
      row += 1;
    });
    entries += row;
    squares += row * row;
  }
  CHECK(std::abs(entries - 1600) < 6 * std::sqrt(1600 * .96));
  CHECK(even(of_column, 8));
  double mean = entries / 200, variance = squares / 200 - mean * mean;
  CHECK(variance > 4.5 && variance < 12);  // 7.68 is expected
  std::size_t all = 0;
  far::erdos_renyi{30, 30, 1}.row<double>(3, [&](std::size_t c, double) { all += c == all; });
  CHECK(all == 30);
  far::erdos_renyi{30, 0, 1}.row<double>(3, [&](std::size_t, double) { all = 0; });
  CHECK(all == 30);

  // R-MAT, before vertices are permuted: the quarters of the first and the last level.
  far::rmat graph({.scale = 9, .edge_factor = 40, .a = .5, .b = .25, .c = .15, .permuted = false});
  std::array<double, 4> first{}, last{};
  const double n = static_cast<double>(graph.entries());
  CHECK(graph.entries() == 40 * 512);
  for (std::size_t e = 0; e < graph.entries(); ++e) {
    auto at = graph.index(e);
    CHECK(at.row < 512 && at.column < 512);
    ++first[2 * (at.row >> 8) + (at.column >> 8)];
    ++last[2 * (at.row & 1) + (at.column & 1)];
  }
  const std::array<double, 4> expected{.5, .25, .15, .1};
  for (std::size_t i = 0; i < 4; ++i) {
    double deviation = 5 * std::sqrt(n * expected[i] * (1 - expected[i]));
    CHECK(std::abs(first[i] - n * expected[i]) < deviation);
    CHECK(std::abs(last[i] - n * expected[i]) < deviation);
  }
  far::rmat both({.scale = 6, .edge_factor = 3, .symmetric = true});
  for (std::size_t e = 0; e < both.entries(); e += 2) {
    auto one = both.index(e), other = both.index(e + 1);
    CHECK(one.row == other.column && one.column == other.row);
  }
  CHECK_THROWS(far::rmat({.a = .6, .b = .3, .c = .2}), "are no probabilities");
  CHECK_THROWS(far::rmat({.scale = 60}), "at most 48");

  auto uniform = far::entry_values::uniform(-2, 3, 5);
  auto whole = far::entry_values::whole(1, 9, 5);
  std::array<int, 10> tenths{};
  std::array<int, 9> digits{};
  for (std::size_t i = 0; i < 9000; ++i) {
    double x = uniform.at<double>(i / 90, i % 90);
    CHECK(x >= -2 && x <= 3);
    ++tenths[std::min<std::size_t>(9, static_cast<std::size_t>(2 * (x + 2)))];
    int digit = whole.at<int>(i % 90, i / 90);
    CHECK(digit >= 1 && digit <= 9 && whole.at<double>(i % 90, i / 90) == digit);
    ++digits[static_cast<std::size_t>(digit - 1)];
  }
  CHECK(even(tenths, 900));
  CHECK(even(digits, 1000));
}

template <class G>
void parts_are_the_whole(const G& generator) {
  const far::matrix_shape shape = generator.shape();
  const auto all = far::generate_part<double>(generator, far::whole_of(shape));
  std::set<std::pair<std::size_t, std::size_t>> places;
  std::vector<std::size_t> of_row(shape.rows);
  bool good = true;
  for (const auto& e : all) {
    good = good && places.emplace(e.row, e.column).second && contains(shape, {e.row, e.column});
    if (e.row < shape.rows) ++of_row[e.row];
  }
  CHECK(good && !all.empty());
  CHECK(std::is_sorted(all.begin(), all.end(), far::detail::before<double>));
  if constexpr (far::row_generator<G>)
    for (std::size_t n : of_row) CHECK(n <= generator.row_bound());
  for (std::size_t ranks = 1; ranks <= 7; ++ranks) {
    std::vector<far::triplet<double>> joined, tiles;
    for (std::size_t r = 0; r < ranks; ++r) {
      auto rows = far::even_part(shape.rows, r, ranks);
      for (std::size_t i = rows.first; i < rows.last; ++i)
        CHECK(far::even_part_of(shape.rows, i, ranks) == r);
      auto some = far::generate_rows<double>(generator, rows);
      joined.insert(joined.end(), some.begin(), some.end());
      some = far::generate_part<double>(generator,
                                        {{0, shape.rows}, far::even_part(shape.columns, r, ranks)});
      tiles.insert(tiles.end(), some.begin(), some.end());
    }
    CHECK(joined == all);
    std::sort(tiles.begin(), tiles.end(), far::detail::before<double>);
    CHECK(tiles == all);
  }
}

/// What a Laplacian is, by its neighbours.
void laplacians() {
  const std::size_t nx = 4, ny = 3, nz = 5;
  std::map<std::pair<std::size_t, std::size_t>, double> expected, seen;
  auto number = [&](std::size_t x, std::size_t y, std::size_t z) { return x + nx * (y + ny * z); };
  for (std::size_t x = 0; x < nx; ++x)
    for (std::size_t y = 0; y < ny; ++y)
      for (std::size_t z = 0; z < nz; ++z) {
        const std::size_t me = number(x, y, z);
        expected[{me, me}] = 6;
        auto neighbour = [&](std::size_t to) { expected[{me, to}] = expected[{to, me}] = -1; };
        if (x + 1 < nx) neighbour(number(x + 1, y, z));
        if (y + 1 < ny) neighbour(number(x, y + 1, z));
        if (z + 1 < nz) neighbour(number(x, y, z + 1));
      }
  far::for_each_generated<double>(
      far::laplacian_3d{nx, ny, nz}, {0, nx * ny * nz},
      [&](std::size_t r, std::size_t c, double v) { seen[{r, c}] = v; });
  CHECK(seen == expected);
  seen.clear();
  far::for_each_generated<double>(
      far::laplacian_2d{nx, ny}, {0, nx * ny},
      [&](std::size_t r, std::size_t c, double v) { seen[{r, c}] = v; });
  CHECK(seen.size() == 12 * 5 - 2 * (4 + 3));
  for (const auto& [at, value] : seen)
    CHECK(value == (at.first == at.second ? 4 : expected.at(at)));
  seen.clear();
  far::for_each_generated<double>(
      far::banded{5, 4, 1, 2}, {0, 5},
      [&](std::size_t r, std::size_t c, double v) { seen[{r, c}] = v; });
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t c = 0; c < 4; ++c) CHECK(seen.contains({r, c}) == (r <= c + 1 && c <= r + 2));
}

}  // namespace

int main() {
  permutations();
  distributions();
  laplacians();
  parts_are_the_whole(
      far::rmat({.scale = 6, .edge_factor = 5, .values = far::entry_values::uniform()}));
  parts_are_the_whole(far::rmat({.scale = 5, .symmetric = true}));
  parts_are_the_whole(far::random_entries{20, 33, 250, 4, far::entry_values::whole()});
  parts_are_the_whole(far::erdos_renyi{50, 3, 2, far::entry_values::uniform()});
  parts_are_the_whole(far::random_rows{12, 40, 7, 3});
  parts_are_the_whole(far::random_rows{12, 5, 9, 3});
  parts_are_the_whole(far::banded{30, 20, 2, 50});
  parts_are_the_whole(far::diagonal{17, 2.5});
  parts_are_the_whole(far::dense_random{6, 5});
  parts_are_the_whole(far::laplacian_2d{5, 6});
  parts_are_the_whole(far::laplacian_3d{3, 4, 2});
  return verdict("matrix_generators");
}
