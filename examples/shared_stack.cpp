// A lock-free stack whose nodes lie on all ranks: a far::ptr is one word, so compare_swap can
// move the top of the stack. Everybody pushes first and pops afterwards.
#include <farside/farside.hpp>

#include <cstdio>
#include <cstdlib>

struct node {
  int value;
  far::ptr<node> below;
};

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    constexpr int each = 100;
    auto top = far::broadcast(
        far::rank() == 0 ? far::make<far::ptr<node>>() : far::ptr<far::ptr<node>>(), 0);

    for (int i = 0; i < each; ++i) {
      auto mine = far::alloc<node>();
      auto seen = far::atomic_load(top);
      for (;;) {
        far::put(mine, node{i, seen});
        far::flush(mine.rank());  // the node is complete before anybody can find it
        auto now = far::compare_swap(top, seen, mine);
        if (now == seen) break;
        seen = now;
      }
    }
    far::barrier();

    long popped = 0, sum = 0;
    for (auto seen = far::atomic_load(top); seen;) {
      node n = far::get(seen);
      auto now = far::compare_swap(top, seen, n.below);  // no pushes now, so no node comes back
      if (now == seen) {
        ++popped;
        sum += n.value;
        now = n.below;
      }
      seen = now;
    }
    long all = far::all_reduce(popped), total = far::all_reduce(sum);
    far::print("rank ", far::rank(), " popped ", popped, "\n");
    long n = far::nprocs();
    return all == n * each && total == n * each * (each - 1) / 2 ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
