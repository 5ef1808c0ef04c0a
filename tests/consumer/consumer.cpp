// The first program anybody writes: every rank adds to a number on rank 0 and reads it.
// Its argument is the number of ranks there should be.
#include <cstdlib>
#include <farside/core.hpp>

int main(int argc, char** argv) {
  far::runtime world(argc, argv);
  far::ptr<long> sum;
  if (far::rank() == 0) sum = far::make<long>(0);
  sum = far::broadcast(sum, 0);
  far::fetch_add(sum, static_cast<long>(far::rank()) + 1);
  far::barrier();
  const long n = static_cast<long>(far::nprocs());
  const bool right = argc == 2 && n == std::atol(argv[1]) && far::get(sum) == n * (n + 1) / 2;
  far::print("rank ", far::rank(), " of ", n, right ? " is right\n" : " is wrong\n");
  return right ? 0 : 1;
}
