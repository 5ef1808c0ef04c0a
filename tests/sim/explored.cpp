// Small programs whose schedules can all be tried. Each must pass in every one, or fail in some.
//
//   explored_sim NAME     with FARSIDE_SIM_EXHAUSTIVE=RUNS
#include <farside/farside.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using word = std::uint64_t;

void expect(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

struct cell {
  far::ptr<word> x, y;
};

cell two_words() {
  cell made;
  if (far::rank() == 0) {
    auto at = far::alloc<word>(16);
    std::vector<word> zeros(16);
    far::put(at, zeros.data(), 16);
    made = {at, at + 8};
  }
  made = far::broadcast(made, 0);
  far::barrier();
  return made;
}

/// Atomics alone: every increment counts.
void increments() {
  cell c = two_words();
  {
    far::explored part;
    far::fetch_add(c.x, 1);
    far::fetch_add(c.x, 1);
  }
  far::barrier();
  expect(far::get(c.x) == 2 * far::nprocs(), "an increment was lost");
}

/// Reading and writing back loses some in some schedules.
void lost_increments() {
  cell c = two_words();
  {
    far::explored part;
    far::put(c.x, far::get(c.x) + 1);
    far::flush();
  }
  far::barrier();
  expect(far::get(c.x) == far::nprocs(), "an increment was lost");
}

/// Message passing, of two words.
template <bool Flush>
void message() {
  cell c = two_words();
  word flag = 0;
  std::vector<word> data;
  {
    far::explored part;
    if (far::rank() == 0) {
      word values[2] = {1, 1};
      far::put(c.y, values, 2);
      if (Flush) far::flush();
      far::atomic_store(c.x, 1);
    } else {
      flag = far::atomic_load(c.x);
      data = far::get(c.y, 2);
    }
  }
  expect(flag == 0 || (data[0] == 1 && data[1] == 1), "the flag came before the data");
}

/// Store buffering: with a flush one of the two sees the other.
template <bool Flush>
void store_buffering() {
  cell c = two_words();
  word seen = 0;
  {
    far::explored part;
    far::put(far::rank() == 0 ? c.x : c.y, 1);
    if (Flush) far::flush();
    if (far::rank() < 2) seen = far::get(far::rank() == 0 ? c.y : c.x);
  }
  expect(far::all_reduce(far::rank() < 2 ? seen : 0) > 0, "neither saw the other");
}

/// Every rank takes memory of rank 0 and gives it back; no two hold the same.
void remote_heap() {
  auto first = far::rank() == 0 ? far::alloc_on<word>(0) : far::ptr<word>(nullptr);
  far::dealloc(first);
  far::barrier();
  far::ptr<word> mine = nullptr;
  {
    far::explored part;
    mine = far::alloc_on<word>(0);
  }
  auto all = far::all_gather(mine);
  for (far::rank_t a = 0; a < far::nprocs(); ++a)
    for (far::rank_t b = 0; b < a; ++b) expect(all[a] != all[b], "two ranks have the same memory");
  far::dealloc(mine);
}

/// The end of a barrier comes after all have come.
void barrier() {
  cell c = two_words();
  word seen = 0;
  {
    far::explored part;
    far::put(c.x + static_cast<std::ptrdiff_t>(far::rank()), 1);
    far::barrier();
    for (far::rank_t r = 0; r < far::nprocs(); ++r)
      seen += far::get(c.x + static_cast<std::ptrdiff_t>(r));
  }
  expect(seen == far::nprocs(), "somebody left the barrier too early");
}

/// An asynchronous get is ready only when it has been performed.
void async_gets() {
  cell c = two_words();
  word a = 9, b = 9;
  {
    far::explored part;
    if (far::rank() == 0) {
      far::put(c.x, 1);
      far::flush();
    } else {
      auto f = far::async_get(c.x), g = far::async_get(c.y);
      a = f.get(), b = g.get();
    }
  }
  expect(far::rank() == 0 || (a <= 1 && b == 0), "a value from nowhere");
}

const std::map<std::string, void (*)()> cases = {
    {"increments", increments},
    {"lost_increments", lost_increments},
    {"message", message<true>},
    {"message_without_flush", message<false>},
    {"store_buffering", store_buffering<true>},
    {"store_buffering_without_flush", store_buffering<false>},
    {"remote_heap", remote_heap},
    {"barrier", barrier},
    {"async_gets", async_gets},
};

}  // namespace

int main(int argc, char** argv) {
  auto chosen = cases.find(argc > 1 ? argv[1] : "");
  if (chosen == cases.end()) {
    std::fprintf(stderr, "usage: explored_sim NAME, one of\n");
    for (const auto& [name, body] : cases) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  return far::run(argc, argv, [&] { chosen->second(); });
}
