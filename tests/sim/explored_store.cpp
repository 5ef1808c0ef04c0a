// A key of a store in every schedule of two ranks, and what a fence counts.
//
//   explored_store_sim NAME     with FARSIDE_SIM_EXHAUSTIVE=RUNS
#include <farside/containers/store.hpp>
#include <farside/farside.hpp>

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

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

/// A store with key 1, whose place both know.
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

/// One erases while the other puts the key anew. The put counts if the erasure came first, and is
/// refused if not.
void put_against_erase() {
  auto data = one_object();
  int other = 2;
  while (data.owner(other) != data.owner(1)) ++other;
  if (far::rank() == 1) data.put(other, filled(2));  // takes memory for the next one, too
  far::barrier();
  bool erased = false, put = false;
  {
    far::explored part;
    if (far::rank() == 0)
      erased = data.erase(1);
    else
      put = data.put(1, filled(3));
  }
  if (far::rank() == 0) expect(erased, "it was there");
  const bool there = far::all_reduce(put ? 1 : 0, std::plus<>()) == 1;
  const auto value = data.get(1);
  expect(is_whole(value), "torn");
  expect(there == value.has_value(), "the put and the key disagree");
  expect(!value || value->words[0] == 3, "an old value");
  far::barrier();
  expect(data.size() == 1u + there, "wrongly counted");
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

/// What a fence counts, while continuations post more, of two ranks. Here one rank is all their
/// fences: in each round it takes the counts of both, one after the other. The other one is all their
/// handlers, which run at any moment, as threads that serve would. Rank 0 has posted twice to rank 1,
/// where the first one makes a continuation post twice to rank 0; the second one is handled last.
/// Without CountsInTime there is no second one, and the first counts as handled too early.
struct counted_ranks {
  std::array<far::detail::message_counts, 2> counts;
  int moves = 0;       ///< of handlers
  bool ended = false;  ///< the last of them
};
std::optional<counted_ranks> both;  // ranks are fibres of one process

template <bool CountsInTime, std::size_t First>
void fence() {
  if (far::rank() == 0) {
    both.emplace();
    for (int posts = 0; posts < (CountsInTime ? 2 : 1); ++posts) both->counts[0].count_sent();
  }
  auto clock = far::broadcast(far::alloc<std::uint64_t>(), 0);
  // Between two of these, what a rank does to `both` is one step to the other.
  auto step = [&] { far::fetch_add(clock, std::uint64_t{1}); };
  bool was_last = true;
  {
    far::explored part;
    if (far::rank() == 0) {
      int seen = -1, idle = 0;
      far::detail::message_counts::repeat_until_all_handled([&] {
        // A third round that takes the same counts would be as the second one: handlers go on first.
        while (idle == 1 && both->moves == seen) far::detail::here().wait_round();
        step();
        idle = std::exchange(seen, both->moves) == both->moves ? idle + 1 : 0;
        const auto all = both->counts[First].now();
        step();
        return all + both->counts[1 - First].now();
      });
      was_last = both->ended;
    } else {
      auto count = [&](auto what) {
        step();
        what();
        ++both->moves;
      };
      auto post_two = [&] { both->counts[1].count_sent(), both->counts[1].count_sent(); };
      auto handled = [&](std::size_t where) {
        count([&] { both->counts[where].count_handled(); });
      };
      if (CountsInTime) count(post_two);
      handled(1);
      if (!CountsInTime) count(post_two);
      handled(0);
      handled(0);
      count([] { both->ended = true; });
      if (CountsInTime) handled(1);
    }
  }
  expect(was_last, "the fence has ended before all was handled");
  far::barrier();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> programs = {{"get_against_erase", get_against_erase},
                                                      {"erases", erases},
                                                      {"erase_against_cells", erase_against_cells},
                                                      {"put_against_erase", put_against_erase},
                                                      {"fence", fence<true, 0>},
                                                      {"fence_other_way", fence<true, 1>},
                                                      {"fence_counted_late", fence<false, 0>},
                                                      {"counts", counts}};
  auto chosen = programs.find(argc > 1 ? argv[1] : "");
  if (chosen == programs.end()) {
    for (const auto& [name, program] : programs) std::printf("%s\n", name.c_str());
    return 2;
  }
  return far::run(argc, argv, [&] { chosen->second(); });
}
