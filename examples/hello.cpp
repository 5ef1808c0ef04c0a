// The program of the README: every rank adds its number to one word of rank 0.
#include <farside/farside.hpp>

#include <cstdlib>

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    far::ptr<long> sum;
    if (far::rank() == 0) sum = far::make<long>(0);
    sum = far::broadcast(sum, 0);  // now all know where it lies

    far::fetch_add(sum, far::rank() + 1);  // one remote atomic; rank 0 takes no part
    far::barrier();

    long n = far::nprocs();
    far::print("rank ", far::rank(), " of ", n, " reads ", far::get(sum), "\n");
    return far::get(sum) == n * (n + 1) / 2 ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
