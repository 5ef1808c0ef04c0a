// Latency is hidden by having many operations in flight: a hundred reads begun at once, and a
// chain of dependent reads written as a coroutine, of which many run side by side.
#include <farside/farside.hpp>

#include <cstdlib>
#include <vector>

using stop = far::ptr<long>;  // a word that holds the raw bits of where the next stop lies

/// Goes `steps` stops far. Each step needs the one before, so one walk cannot be sped up.
static far::future<long> walk(stop at, int steps) {
  for (int i = 0; i < steps; ++i)
    at = stop::from_raw(static_cast<std::uint64_t>(co_await far::async_get(at)));
  co_return static_cast<long>(at.rank());
}

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    constexpr int words = 100;
    auto mine = far::alloc<long>(words);
    auto all = far::all_gather(mine);
    far::rank_t next = (far::rank() + 1) % far::nprocs();
    for (int i = 0; i < words; ++i) far::put(mine + i, static_cast<long>((all[next] + i).raw()));
    far::barrier();

    std::vector<far::future<long>> reads, walks;
    for (int i = 0; i < words; ++i) reads.push_back(far::async_get(all[next] + i));
    for (int i = 0; i < words; ++i)
      walks.push_back(walk(mine + i, static_cast<int>(far::nprocs())));

    auto values = far::when_all(std::move(reads)).get();
    auto ends = far::when_all(std::move(walks)).get();
    bool home = true;  // as many steps as ranks lead back to where the walk began
    for (long end : ends) home = home && end == static_cast<long>(far::rank());
    far::print("rank ", far::rank(), " read ", values.size(), " words and took ", ends.size(),
               " walks ", home ? "home\n" : "into the wild\n");
    far::barrier();
    return home ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
