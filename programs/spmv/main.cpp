// Sparse matrix times vector: the Laplacian of a grid.
#include "product.hpp"

#include <common/run_program.hpp>
#include <farside/algorithms/array_operations.hpp>

#include <cmath>
#include <cstdio>
#include <numbers>
#include <string>
#include <vector>

namespace spmv_program {

namespace {

constexpr const char* help = R"(usage: farside spmv [-n RANKS] [options]

Multiplies the seven-point Laplacian of a three-dimensional grid with a vector, again and again: x = A x / 12. Each rank
has the rows of an even part of the points, in compressed rows. The vectors are global arrays; what a rank needs of the
parts of others it gets, in patches. x begins as the shortest wave of the grid, which A only multiplies by a number that
is known: so every element of the result is checked.

Options:

  -g, --grid N       points in each direction (64), or XxYxZ
  -r, --repeat K     products (20)
      --verify       rank 0 computes the same alone, point by point; all elements must agree to 1e-13
      --json         prints all figures as JSON

)";

struct request {
  far::laplacian_3d grid{64, 64, 64};
  std::size_t repeat = 20;
  bool verify = false, json = false, help = false;
};

far::laplacian_3d grid_of(const std::string& option, const std::string& text) {
  std::vector<std::size_t> sides;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    sides.push_back(toolkit::whole_number(option, text.substr(begin, end - begin), 1, 100'000));
    begin = end + 1;
  }
  if (sides.size() == 1) sides.resize(3, sides[0]);
  if (sides.size() != 3)
    throw toolkit::wrong_option("option " + option + ": '" + text +
                                "' is neither one number nor three, such as 64x32x16");
  return {sides[0], sides[1], sides[2]};
}

request parse(const std::vector<std::string>& words) {
  request result;
  toolkit::option_reader in(words);
  while (in.next()) {
    if (in.is_operand())
      throw toolkit::wrong_option("it takes no files, but was given '" + in.text() + "'");
    if (in.is("-h", "--help"))
      in.no_value(), result.help = true;
    else if (in.is("-g", "--grid"))
      result.grid = grid_of(in.name(), in.value("points in each direction"));
    else if (in.is("-r", "--repeat"))
      result.repeat = toolkit::whole_number(in.name(), in.value(), 1, 1'000'000);
    else if (in.is("--verify"))
      in.no_value(), result.verify = true;
    else if (in.is("--json"))
      in.no_value(), result.json = true;
    else
      programs::refuse_option(in.name(), {"--grid", "--repeat", "--verify", "--json", "--help"});
  }
  return result;
}

/// x in the beginning, at one point: the shortest wave that the grid has, which is the one that A
/// enlarges most, so that rounding errors do not outgrow it.
double wave(const far::laplacian_3d& g, std::size_t i) {
  auto sine = [](std::size_t at, std::size_t n) {
    const double half =
        std::sin(std::numbers::pi * static_cast<double>(at + 1) / static_cast<double>(n + 1));
    return at % 2 == 0 ? half : -half;
  };
  return sine(i % g.nx, g.nx) * sine(i / g.nx % g.ny, g.ny) * sine(i / g.nx / g.ny, g.nz);
}

/// What A makes of it, as a factor: at most 12.
double eigenvalue(const far::laplacian_3d& g) {
  auto side = [](std::size_t n) {
    return 2 + 2 * std::cos(std::numbers::pi / static_cast<double>(n + 1));
  };
  return side(g.nx) + side(g.ny) + side(g.nz);
}

/// The same on one rank: the elements in the end, without any matrix.
std::vector<double> computed_alone(const far::laplacian_3d& g, std::size_t repeat) {
  const std::size_t layer = g.nx * g.ny, n = layer * g.nz;
  std::vector<double> x(n), y(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = wave(g, i);
  for (std::size_t k = 0; k < repeat; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = i % g.nx, row = i / g.nx % g.ny, plane = i / layer;
      double sum = 6 * x[i];
      if (plane > 0) sum -= x[i - layer];
      if (row > 0) sum -= x[i - g.nx];
      if (at > 0) sum -= x[i - 1];
      if (at + 1 < g.nx) sum -= x[i + 1];
      if (row + 1 < g.ny) sum -= x[i + g.nx];
      if (plane + 1 < g.nz) sum -= x[i + layer];
      y[i] = sum / 12;
    }
    std::swap(x, y);
  }
  return x;
}

int run(const std::vector<std::string>& words) {
  const request asked = parse(words);
  if (asked.help) {
    if (far::rank() == 0) std::fputs(help, stdout);
    return 0;
  }
  const std::size_t n = asked.grid.shape().rows;
  vector x(n, {.name = "x"}), y = x.duplicate("y");
  const auto mine = x.local();
  const auto first = static_cast<std::size_t>(mine.block().first[0]);
  const far::index_range rows{first, first + mine.size()};
  if (rows.size() > std::size_t{1} << 28)
    throw far::error("farside: more than 268435456 rows on a rank; use more ranks");
  std::optional<product> a;
  const double making = programs::timed([&] { a.emplace(asked.grid, rows); });
  x.for_each_local([&](const far::array_index<1>& i, double& value) {
    value = wave(asked.grid, static_cast<std::size_t>(i[0]));
  });
  far::barrier();

  double multiplying = 0, waiting = 0;
  const double all = programs::timed([&] {
    for (std::size_t k = 0; k < asked.repeat; ++k) {
      multiplying += programs::timed([&] {
        a->run(x, y);
        auto part = y.local();
        for (std::size_t i = 0; i < part.size(); ++i) part.data()[i] /= 12;
      });
      // All have read x, and all of y is there: then they change places.
      waiting += programs::timed([] { far::barrier(); });
      std::swap(x, y);
    }
  });

  const double factor = std::pow(eigenvalue(asked.grid) / 12, static_cast<double>(asked.repeat));
  double worst = 0;
  x.for_each_local([&](const far::array_index<1>& i, double& value) {
    worst = std::max(worst,
                     std::abs(value - factor * wave(asked.grid, static_cast<std::size_t>(i[0]))) /
                         std::max(factor, 1e-300));
  });
  worst = far::all_reduce(worst, far::maximum());
  // Each product adds a few rounding errors, and no wave is enlarged more than this one.
  const double allowed = 4e-15 * (1 + static_cast<double>(asked.repeat));
  double furthest = 0;
  if (asked.verify && far::rank() == 0) {
    const std::vector<double> alone = computed_alone(asked.grid, asked.repeat);
    const std::vector<double> here = x.get(x.all());
    for (std::size_t i = 0; i < n; ++i) furthest = std::max(furthest, std::abs(here[i] - alone[i]));
  }
  furthest = far::broadcast(furthest, 0);

  programs::rank_figures figures;
  figures.seconds("making", making);
  figures.seconds("multiplying", multiplying);
  figures.seconds("gets", a->seconds_in_gets());
  figures.seconds("waiting", waiting);
  figures.count("rows", rows.size());
  figures.count("patches", a->patches());
  figures.count("bytes", asked.repeat * a->halo_bytes());
  const double rate = 14e-9 * static_cast<double>(n * asked.repeat) / all;
  if (asked.json) {
    far::json_writer out;
    out.begin_object();
    out.key("points").value(n).key("products").value(asked.repeat).key("seconds").value(all);
    out.key("gflops").value(rate).key("error").value(worst).key("allowed").value(allowed);
    if (asked.verify) out.key("from_serial").value(furthest);
    programs::write_json(out, figures);
    out.end_object();
    if (far::rank() == 0) std::printf("%s\n", out.text().c_str());
  } else {
    const std::string table = programs::table_of(figures);
    if (far::rank() == 0) {
      std::printf("%zu x %zu x %zu points, %zu products: %.1f ms, %.2f Gflop/s\n%s", asked.grid.nx,
                  asked.grid.ny, asked.grid.nz, asked.repeat, 1e3 * all, rate, table.c_str());
      std::printf("checked: relative to the wave's height all elements are right to %.1e\n", worst);
      if (asked.verify)
        std::printf("verified: off by %.1e from what rank 0 computes alone\n", furthest);
    }
  }
  if (!(worst <= allowed))
    throw far::refusal(far::text("farside spmv: WRONG: an element is off by ", worst,
                                 " of the wave's height, and ", allowed, " are allowed"));
  if (asked.verify && !(furthest <= 1e-13))
    throw far::refusal(far::text("farside spmv: WRONG: an element is off by ", furthest,
                                 " from what one rank computes alone"));
  return 0;
}

}  // namespace

}  // namespace spmv_program

int main(int argc, char** argv) {
  return programs::run_program("spmv", argc, argv, spmv_program::run);
}
