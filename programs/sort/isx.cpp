// The ISx benchmark: how long a bucket sort of uniform keys takes, and whether it was one.

#include <farside/base/random.hpp>
#include <sort/bucket_sort.hpp>
#include <sort/options.hpp>
#include <toolkit/table.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace programs {

namespace {

struct plan {
  std::uint64_t keys;   ///< of this rank
  std::uint64_t range;  ///< they are below it
};

/// As ISx does: keys below 2^28, unless each rank has a share of 8192 of them, whatever their
/// number.
plan plan_for(const sort_options& options) {
  std::uint64_t ranks = far::nprocs(), me = far::rank();
  plan result{options.keys, options.range};
  if (options.grows == scaling::strong)
    result.keys = options.keys * (me + 1) / ranks - options.keys * me / ranks;
  if (result.range == 0)
    result.range = options.grows == scaling::isobucket ? 8192 * ranks : std::uint64_t{1} << 28;
  return result;
}

big_array<isx_key> make_keys(const plan& asked, std::uint64_t seed) {
  far::random_stream random(seed, far::rank());
  big_array<isx_key> keys(asked.keys);
  for (isx_key& key : keys) key = static_cast<isx_key>(((random() >> 32) * asked.range) >> 32);
  return keys;
}

/// Two sets of keys with the same sum are the same, but for a chance of 2^-64.
std::uint64_t sum_of_hashes(std::span<const isx_key> keys) {
  std::uint64_t sum = 0;
  for (isx_key key : keys) sum += far::random_stream(key)();
  return far::all_reduce(sum);
}

/// Collective. Refuses, with the rank and the place, what is no result of a sort.
void verify(std::span<const isx_key> sorted, key_owner owner, std::uint64_t count,
            std::uint64_t hashes) {
  std::string problem;
  auto stranger = std::find_if(sorted.begin(), sorted.end(),
                               [&](isx_key key) { return owner(key) != far::rank(); });
  auto disorder = std::is_sorted_until(sorted.begin(), sorted.end());
  if (stranger != sorted.end())
    problem =
        far::text("rank ", far::rank(), " got the key ", *stranger, " of rank ", owner(*stranger));
  else if (disorder != sorted.end())
    problem = far::text("rank ", far::rank(), ": key ", disorder - sorted.begin(), ", ", *disorder,
                        ", is behind ", disorder[-1]);
  auto found = far::all_reduce(std::uint64_t{sorted.size()});
  if (problem.empty() && found != count)
    problem = far::text(count, " keys were sorted, and ", found, " came back");
  else if (problem.empty() && sum_of_hashes(sorted) != hashes)
    problem = "the keys that came back are others than those that were sorted";
  refuse_together("sort", problem.empty() ? "" : "verification failed: " + problem);
}

/// Seconds of each phase, of the slowest rank.
void add_slowest(std::vector<stopwatch::phase> laps, std::vector<std::vector<double>>& times) {
  times.resize(laps.size() + 1);
  double whole = 0;
  for (std::size_t i = 0; i < laps.size(); ++i) {
    whole += laps[i].seconds;
    times[i].push_back(far::all_reduce(laps[i].seconds, far::maximum()));
  }
  times.back().push_back(far::all_reduce(whole, far::maximum()));
}

double median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of[of.size() / 2];
}

std::vector<std::string> row(const std::string& name, const std::vector<double>& seconds) {
  auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  return {name, milliseconds(*least), milliseconds(median(seconds)), milliseconds(*most)};
}

double time_std_sort(const plan& asked, std::uint64_t seed) {
  big_array<isx_key> keys = make_keys(asked, seed);
  far::barrier();
  stopwatch watch;
  std::sort(keys.begin(), keys.end());
  watch.lap("std::sort");
  return far::all_reduce(watch.laps()[0].seconds, far::maximum());
}

/// MiB of the rank that needs most.
double peak_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return far::all_reduce(static_cast<double>(used.ru_maxrss) / 1024, far::maximum());
}

const char* name_of(scaling how) {
  return how == scaling::weak ? "weak" : how == scaling::strong ? "strong" : "weak isobucket";
}

}  // namespace

void run_isx(const sort_options& options) {
  plan asked = plan_for(options);
  std::uint64_t count = far::all_reduce(asked.keys);
  key_owner owner(asked.range);
  sort_memory memory;
  std::vector<std::vector<double>> times;
  std::vector<stopwatch::phase> laps;
  std::vector<double> alone;
  for (unsigned run = 0; run <= options.runs; ++run) {
    big_array<isx_key> keys = make_keys(asked, options.seed + run);
    std::uint64_t hashes = sum_of_hashes({keys.begin(), keys.end()});
    far::barrier();
    stopwatch watch;
    auto sorted = bucket_sort({keys.begin(), keys.end()}, owner, memory, watch);
    laps = watch.laps();
    verify(sorted, owner, count, hashes);
    if (run > 0) add_slowest(laps, times);  // the first warms up
  }
  double peak = peak_memory();
  if (options.beside_std_sort)
    for (unsigned run = 1; run <= options.runs; ++run)
      alone.push_back(time_std_sort(asked, options.seed + run));
  if (far::rank() != 0) return;

  std::printf("ISx, %s scaling: %llu keys below %llu on %u rank%s, %u run%s after one to warm up\n",
              name_of(options.grows), static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(asked.range), far::nprocs(),
              far::nprocs() == 1 ? "" : "s", options.runs, options.runs == 1 ? "" : "s");
  toolkit::table shown(toolkit::columns::figures);
  shown.row({"milliseconds of the slowest rank", "least", "median", "most"});
  for (std::size_t i = 0; i < laps.size(); ++i) shown.row(row(laps[i].name, times[i]));
  shown.row(row("whole", times.back()));
  if (!alone.empty()) shown.row(row("std::sort of as many keys", alone));
  std::fputs(shown.text("  ").c_str(), stdout);
  double whole = median(times.back());
  std::printf("%.1f million keys a second", static_cast<double>(count) / whole / 1e6);
  if (!alone.empty()) std::printf("; whole / std::sort = %.3f", whole / median(alone));
  std::printf("; peak memory of a rank %.0f MiB\n", peak);
  std::printf(
      "verified each time: keys in their ranks' ranges, in order, and the same as before\n");
}

}  // namespace programs
