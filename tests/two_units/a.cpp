// The first of two translation units: the program.
#include <farside/farside.hpp>
#include <stdexcept>
#include <string>

#include "b.hpp"

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    far::ptr<long> sum;
    if (far::rank() == 0) sum = far::make<long>(0);
    sum = far::broadcast(sum, 0);
    add_rank(sum);
    far::barrier();
    const long n = static_cast<long>(far::nprocs());
    const long seen = far::get(sum);
    if (seen != n * (n + 1) / 2) {
      throw std::runtime_error("rank " + std::to_string(far::rank()) + " sees a sum of " +
                               std::to_string(seen) + ", not " + std::to_string(n * (n + 1) / 2));
    }
  });
}
