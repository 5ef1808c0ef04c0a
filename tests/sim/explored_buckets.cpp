// A bucket of a hash map in every schedule of two ranks.
//
//   explored_buckets_sim NAME     with FARSIDE_SIM_EXHAUSTIVE=RUNS
#include <farside/containers/hash_map.hpp>
#include <farside/farside.hpp>

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>

namespace {

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

struct pair_value {
  std::uint64_t a, b;
  bool operator==(const pair_value&) const = default;
};

// What polls until a put has come has no end of schedules: those are left to the seeds.

/// Two keys with one home and different fingerprints, inserted at the same time: both get a bucket.
void neighbours() {
  far::hash_map<int, pair_value> map(1);
  auto& engine = map.implementation();
  auto home = [&](int key) {
    auto p = engine.place_of(key);
    return std::pair(p.member, p.home(engine.tables.of(p.member).capacity));
  };
  int second = 1;
  while (home(second) != home(0)) ++second;
  int mine = far::rank() == 0 ? 0 : second;
  std::uint64_t value = far::rank() + 1;
  bool won;
  {
    far::explored part;
    won = map.insert(mine, {value, ~value});
  }
  expect(won, "both are new");
  far::barrier();
  expect(map.find(0) == pair_value{1, ~std::uint64_t{1}}, "the first is not there");
  expect(map.find(second) == pair_value{2, ~std::uint64_t{2}}, "the second is not there");
  far::barrier();
}

/// One reads while the other erases and looks again: the value or nothing, and nothing afterwards.
void find_against_erase() {
  far::hash_map<int, pair_value> map(1);
  if (far::rank() == 0) map.insert(1, {1, ~std::uint64_t{1}});
  far::barrier();
  std::optional<pair_value> first, second;
  bool erased = false;
  {
    far::explored part;
    if (far::rank() == 0) {
      erased = map.erase(1);
    } else {
      first = map.find(1);
      second = map.find(1);
    }
  }
  if (far::rank() == 0) expect(erased, "it was there");
  expect(!first || first->b == ~first->a, "torn");
  expect(first || !second, "it came back");
  far::barrier();
}

/// Both erase: one of them did it.
void erases() {
  far::hash_map<int, pair_value> map(1);
  if (far::rank() == 0) map.insert(1, {1, ~std::uint64_t{1}});
  far::barrier();
  bool erased;
  {
    far::explored part;
    erased = map.erase(1);
  }
  expect(far::all_reduce(erased ? 1 : 0, std::plus<>()) == 1, "not one of them");
  far::barrier();
}

/// Both count up the same cell, one of which is there already.
void counts() {
  far::hash_map<int, int> map(1);
  if (far::rank() == 0) map.insert(1, 10);
  far::barrier();
  {
    far::explored part;
    map.accumulate(1, 1);
  }
  far::barrier();
  expect(map.find(1) == 10 + static_cast<int>(far::nprocs()), "a count was lost");
}

/// One erases what the other counts up: either the count came first and went too, or it begins
/// again.
void erase_against_count() {
  far::hash_map<int, int> map(1);
  if (far::rank() == 0) map.insert(1, 10);
  far::barrier();
  std::optional<int> before;
  bool erased = false;
  {
    far::explored part;
    if (far::rank() == 0)
      erased = map.erase(1);
    else
      before = map.accumulate(1, 5);
  }
  far::barrier();
  auto left = map.find(1);
  if (far::rank() == 0) expect(erased, "it was there");
  if (far::rank() == 1) expect(before ? !left : left == 5, "neither of the two orders");
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> programs = {{"neighbours", neighbours},
                                                      {"find_against_erase", find_against_erase},
                                                      {"erases", erases},
                                                      {"counts", counts},
                                                      {"erase_against_count", erase_against_count}};
  auto chosen = programs.find(argc > 1 ? argv[1] : "");
  if (chosen == programs.end()) {
    for (const auto& [name, program] : programs) std::printf("%s\n", name.c_str());
    return 2;
  }
  return far::run(argc, argv, [&] { chosen->second(); });
}
