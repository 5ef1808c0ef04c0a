// A program for any back end: all ranks add to a word of rank 0, which says how many there were.
#include <farside/farside.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    auto sum = far::broadcast(far::rank() == 0 ? far::make<int>(0) : far::ptr<int>(), 0);
    far::fetch_add(sum, 1);
    far::barrier();
    if (far::rank() == 0)
      std::printf("%d ranks, carried by %s\n", far::get(sum),
                  far::detail::here().link.carried_by());
  });
}
