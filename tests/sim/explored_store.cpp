// A key of a store in every schedule of two ranks.
//
//   explored_store_sim NAME     with FARSIDE_SIM_EXHAUSTIVE=RUNS
#include <farside/containers/store.hpp>
#include <farside/farside.hpp>

#include <array>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>

namespace {

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

struct wide {
  std::array<std::uint64_t, 12> words;
};
struct counted {
  std::int64_t left, right;
};

}  // namespace

template <>
struct far::cells_of<counted> : far::cells<&counted::left, &counted::right> {};

namespace {

wide filled(std::uint64_t n) {
  wide v;
  v.words.fill(n);
  return v;
}
bool is_whole(const std::optional<wide>& v) {
  if (v)
    for (auto w : v->words)
      if (w != v->words[0]) return false;
  return true;
}

/// A store with key 1, whose place both know. What polls has no end of schedules.
far::store<int, wide> one_object() {
  far::store<int, wide> data(1);
  if (far::rank() == 0) data.put(1, filled(1));
  far::barrier();
  expect(data.get(1).has_value(), "it is there");
  far::barrier();
  return data;
}

/// One reads while the other erases and looks again: the value or nothing, and nothing afterwards.
void get_against_erase() {
  auto data = one_object();
  std::optional<wide> first, second;
  bool erased = false;
  {
    far::explored part;
    if (far::rank() == 0) {
      erased = data.erase(1);
    } else {
      first = data.get(1);
      second = data.get(1);
    }
  }
  if (far::rank() == 0) expect(erased, "it was there");
  expect(is_whole(first) && is_whole(second), "torn");
  expect(first || !second, "it came back");
  far::barrier();
  expect(!data.contains(1), "it is erased");
  far::barrier();
}

/// Both erase: one of them did it.
void erases() {
  auto data = one_object();
  bool erased;
  {
    far::explored part;
    erased = data.erase(1);
  }
  expect(far::all_reduce(erased ? 1 : 0, std::plus<>()) == 1, "not one of them");
  far::barrier();
  expect(data.size() == 0, "counted twice");
  far::barrier();
}

/// An erasure has to end two cells, and the other rank adds to the second: where that did not count,
/// the key is gone.
void erase_against_cells() {
  far::store<int, counted> data(1);
  if (far::rank() == 0) data.put(1, {0, 0});
  far::barrier();
  expect(data.get(1).has_value(), "it is there");
  far::barrier();
  std::optional<std::int64_t> added;
  bool erased = false;
  {
    far::explored part;
    if (far::rank() == 0) {
      erased = data.erase(1);
    } else {
      added = data.fetch_add(1, &counted::right, 1);
      if (!added) added = data.get(1, &counted::left);
    }
  }
  if (far::rank() == 0) expect(erased, "it was there");
  expect(!added || *added == 0, "it was gone, and a cell was not");
  far::barrier();
  expect(!data.contains(1), "it is erased");
  far::barrier();
}

/// Both add to one cell.
void counts() {
  far::store<int, counted> data(1);
  if (far::rank() == 0) data.put(1, {0, 0});
  far::barrier();
  expect(data.get(1).has_value(), "it is there");
  far::barrier();
  {
    far::explored part;
    data.fetch_add(1, &counted::left, 1);
  }
  far::barrier();
  expect(data.get(1, &counted::left) == far::nprocs(), "a count was lost");
  far::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> programs = {{"get_against_erase", get_against_erase},
                                                      {"erases", erases},
                                                      {"erase_against_cells", erase_against_cells},
                                                      {"counts", counts}};
  auto chosen = programs.find(argc > 1 ? argv[1] : "");
  if (chosen == programs.end()) {
    for (const auto& [name, program] : programs) std::printf("%s\n", name.c_str());
    return 2;
  }
  return far::run(argc, argv, [&] { chosen->second(); });
}
