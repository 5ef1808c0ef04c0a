// Heat in a plate whose edges are kept cold. The plate is cut into blocks, one for each rank, and
// each block has a frame of ghosts: copies of the neighbours' cells beside it. A step reads a cell
// and the four around it, all in own memory, and writes into a second plate; then ghosts are
// brought up to date. A plate that begins as a product of two sines keeps that shape while it
// cools, which says what every cell must be in the end.
#include <farside/algorithms/array_operations.hpp>
#include <farside/farside.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

constexpr std::ptrdiff_t n = 64;  // cells in each direction, between edges at 0 and n + 1
constexpr int steps = 500;
constexpr double share = 0.2;  // of the difference to each neighbour that flows in a step

static double sine(std::ptrdiff_t i, int waves) {
  return std::sin(std::numbers::pi * waves * static_cast<double>(i + 1) / (n + 1));
}

/// What is left of such a wave after a step.
static double damping(int x_waves, int y_waves) {
  auto slope = [](int waves) { return 2 - 2 * std::cos(std::numbers::pi * waves / (n + 1)); };
  return 1 - share * (slope(x_waves) + slope(y_waves));
}

static int body() {
  using plate = far::global_array<double, 2>;
  plate now({n, n}, {.ghosts = {1, 1}, .name = "now"});
  plate next = now.duplicate("next");
  now.for_each_local(
      [](far::array_index<2> at, double& cell) { cell = sine(at[0], 1) * sine(at[1], 2); });

  for (int step = 0; step < steps; ++step) {
    now.update_ghosts(far::edges::closed);  // ghosts beyond the edges stay 0
    auto from = now.local(), to = next.local();
    for (std::ptrdiff_t i = 0; i < from.extent(0); ++i)
      for (std::ptrdiff_t j = 0; j < from.extent(1); ++j)
        to[{i, j}] =
            from[{i, j}] + share * (from[{i - 1, j}] + from[{i + 1, j}] + from[{i, j - 1}] +
                                    from[{i, j + 1}] - 4 * from[{i, j}]);
    std::swap(now, next);  // no element is moved
  }

  double left = std::pow(damping(1, 2), steps), worst = 0;
  now.for_each_local([&](far::array_index<2> at, double& cell) {
    worst = std::max(worst, std::abs(cell - left * sine(at[0], 1) * sine(at[1], 2)));
  });
  worst = far::all_reduce(worst, far::maximum());
  double heat = far::dot(now, now);
  if (far::rank() == 0)
    std::printf(
        "%d steps on %td x %td cells: the wave has %.4f of its height, squares sum to %.6f; "
        "off by %.1e at most\n",
        steps, n, n, left, heat, worst);
  return worst < 1e-12 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char** argv) { return far::run(argc, argv, body); }
