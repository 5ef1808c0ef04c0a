// A function as a tree of multiwavelets over all ranks: fine where it changes, coarse where it does not.
#include <farside/algorithms/wavelets.hpp>
#include <farside/core/print.hpp>
#include <farside/core/runtime.hpp>

#include <cmath>
#include <cstdlib>

namespace wavelets = far::wavelets;

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    auto hill = [](const wavelets::point<2>& x) {
      return std::exp(-300 * ((x[0] - 0.5) * (x[0] - 0.5) + (x[1] - 0.5) * (x[1] - 0.5)));
    };
    auto f = wavelets::function<2>::project(hill, {.k = 9, .threshold = 1e-10});
    auto slope = f.derivative(0);  // neighbours on other ranks are fetched
    const wavelets::point<2> x{0.52, 0.49};
    double wrong = std::abs(slope.evaluate(x) + 600 * 0.02 * hill(x));

    // An operator of one's own: called for each leaf by the rank that has it.
    auto twice = f.map_leaves([](auto& leaf) {
      for (std::size_t i = 0; i < leaf.result().size(); ++i)
        leaf.result()[i] = 2 * leaf.values()[i];
      return wavelets::leaf_step::done;
    });
    double ratio = twice.norm() / f.norm();
    auto size = f.census();
    double norm = f.norm();
    if (far::rank() == 0)
      far::print_here(size.nodes, " nodes down to level ", size.deepest, "; the norm is ", norm,
                      "\n");
    return wrong < 1e-5 && std::abs(ratio - 2) < 1e-12 ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
