// Which values are there more than once? A Bloom filter that all ranks share tells for each value,
// with one atomic, whether it has been seen before, anywhere. A few bits a value are enough, and
// only the few that repeat are kept. What a set would say is computed alone, to compare.
#include <farside/farside.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

/// Visits to a page in the order of time; one in ten is a page that was visited before.
static std::string visit(std::uint64_t i) {
  return "page " + std::to_string(i > 9 && i % 10 == 9 ? i * 7919 % (i - 9) / 10 * 10 : i);
}

int main(int argc, char** argv) {
  return far::run(argc, argv, [] {
    constexpr std::uint64_t visits = 20'000;
    far::bloom_filter<std::string> seen(visits, 0.001);

    // Each rank takes its share of the visits. Of all that insert a new page exactly one is told
    // so.
    std::set<std::string> again;
    for (std::uint64_t i = far::rank(); i < visits; i += far::nprocs())
      if (!seen.insert(visit(i))) again.insert(visit(i));

    auto found = far::gather(again, 0);
    auto filled = seen.statistics();
    if (far::rank() != 0) return EXIT_SUCCESS;
    std::set<std::string> candidates;
    for (const auto& part : found) candidates.insert(part.begin(), part.end());

    std::map<std::string, int> counts;
    for (std::uint64_t i = 0; i < visits; ++i) ++counts[visit(i)];
    std::size_t repeated = 0, missed = 0;
    for (const auto& [page, times] : counts)
      if (times > 1) ++repeated, missed += !candidates.contains(page);
    std::size_t wrong = candidates.size() - (repeated - missed);
    std::printf(
        "%zu of %zu pages were visited again; %zu missed, %zu taken for one by mistake; "
        "%.1f bits a visit, %.0f %% set\n",
        repeated, counts.size(), missed, wrong, double(filled.bits) / visits, 100 * filled.load);
    return missed == 0 && wrong < visits / 200 ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
