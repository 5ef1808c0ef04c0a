// Producers and consumers with work stealing: each rank has a queue of work, takes from its own as
// long as there is some, and from the others' when there is none. Work makes more work.
#include <farside/farside.hpp>

#include <cstdio>
#include <cstdlib>
#include <vector>

struct task {
  int depth;  ///< makes two of the next depth, down to 0
  long weight;
};

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    constexpr int depth = 10;
    constexpr long leaves = 1L << depth;
    std::vector<far::circular_queue<task>> queues;
    for (far::rank_t r = 0; r < far::nprocs(); ++r) queues.emplace_back(r, 4 * leaves);
    auto done = far::broadcast(far::rank() == 0 ? far::make<long>(0) : far::ptr<long>(), 0);

    auto& own = queues[far::rank()];
    if (far::rank() == 0) own.push({depth, leaves});  // all of the work is with rank 0
    far::barrier();

    long worked = 0, weight = 0, stolen = 0;
    for (far::rank_t victim = far::rank(); far::atomic_load(done) < leaves;) {
      auto next = queues[victim].try_pop();
      if (!next) {
        victim = (victim + 1) % far::nprocs();  // look at the next rank's
        continue;
      }
      stolen += victim != far::rank();
      victim = far::rank();
      if (next->depth == 0) {
        for (volatile int i = 0; i < 20'000;) i = i + 1;  // hard work
        ++worked;
        weight += next->weight;
        far::fetch_add(done, 1);
      } else {
        task half{next->depth - 1, next->weight / 2};
        task both[] = {half, half};
        own.push(std::span<const task>(both));  // one atomic and one put for both
      }
    }
    far::print("rank ", far::rank(), " did ", worked, " of ", leaves, ", and stole ", stolen, "\n");
    bool right = far::all_reduce(worked) == leaves && far::all_reduce(weight) == leaves;
    for (auto& queue : queues) right = right && queue.empty();
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
