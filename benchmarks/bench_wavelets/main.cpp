// What a tree of multiwavelets over ranks costs beside one of one process: the same kernels, with
// nodes in a std::unordered_map (tests/wavelets/serial_tree.hpp). Trees are uniform, of order 9 in
// three dimensions, so that nothing depends on the function. The floor is made by rank 0 alone, the
// others wait; so with one rank the ratio is what the library costs, and with two it is below 1 if two
// are faster than one.
//
// An iteration is the whole course: project, compress, reconstruct, differentiate. Level 6, of
// 299,593 nodes, takes 7 GiB and is measured when it is asked for:
//
//   farside run -n 2 build/dev/bin/bench_wavelets_smp --filter "level 6" --reps 3
#include "../harness.hpp"

#include <farside/algorithms/wavelets.hpp>
#include <tests/wavelets/serial_tree.hpp>

namespace {

using point = far::wavelets::point<3>;

double hill(const point& x) {
  double r2 = 0;
  for (const double e : x) r2 += (e - 0.5) * (e - 0.5);
  return 5 * std::exp(-5 * r2);
}

void course(far::bench::suite& s, std::uint32_t level) {
  const std::string name = far::text("whole course, level ", level, ", beside one process");
  if (!s.wants(name)) return;
  s.compare(
      name, far::bench::time_of_one(),
      [=](std::size_t n) {
        while (n-- > 0) {
          auto f = far::wavelets::function<3>::project(
              hill, {.k = 9, .threshold = 0, .max_level = level});
          f.compress();
          f.reconstruct();
          far::bench::keep(f.derivative(0).census().nodes);
        }
      },
      [=](std::size_t n) {
        for (; n > 0 && far::rank() == 0; --n) {
          auto f = serial::tree<3>::project(
              hill, {9, {0, far::wavelets::refinement::absolute}, 2, level});
          f.compress();
          f.reconstruct();
          far::bench::keep(f.derivative(0).nodes().size());
        }
        far::barrier();
      });
}

}  // namespace

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(count, words, "Measures trees of multiwavelets beside one process.",
                            [](far::bench::suite& s) {
                              course(s, 3);
                              if (!s.is_quick()) course(s, 4);
                              if (!s.is_quick()) course(s, 5);
                              if (s.asks_for("level 6")) course(s, 6);
                            });
  });
}
