// Programs with the mistakes people make, each beside its right form. On most machines the wrong
// ones work nearly always; the sim back end finds them out.
//
//   wrong_sim NAME right|wrong     fails (status 1) if a rank has seen what it must not see
//   wrong_sim --list
//   wrong_sim NAME says            what a report of the wrong form says, if it says what it was
#include <farside/farside.hpp>

#include <algorithm>
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

/// `n` zeros on each rank.
std::vector<far::ptr<word>> zeros(std::size_t n) {
  auto own = far::alloc<word>(n);
  std::vector<word> values(n);
  far::put(own, values.data(), n);
  auto all = far::all_gather(own);
  far::barrier();
  return all;
}

far::rank_t next() { return (far::rank() + 1) % far::nprocs(); }
far::rank_t previous() { return (far::rank() + far::nprocs() - 1) % far::nprocs(); }

// A flag is raised by an atomic, which may overtake the put it announces.
void flag_without_flush(bool right) {
  auto data = zeros(1), flag = zeros(1);
  far::put(data[next()], 1);
  if (right) far::flush();
  far::atomic_store(flag[next()], 1);
  while (far::atomic_load(flag[far::rank()]) == 0) {
  }
  expect(far::get(data[far::rank()]) == 1, "the flag came before the data");
}

// The neighbour may still be on its way.
void read_before_barrier(bool right) {
  auto data = zeros(1);
  far::put(data[next()], 1);
  if (right) far::barrier();
  expect(far::get(data[far::rank()]) == 1, "the neighbour's data is not there yet");
}

// Collectives order nothing but their own data.
void all_reduce_taken_for_a_barrier(bool right) {
  auto data = zeros(1);
  far::put(data[next()], 1);
  far::all_reduce(1);
  if (right) far::barrier();
  expect(far::get(data[far::rank()]) == 1, "the put was not complete after a collective");
}

// flush(rank) completes the puts to that rank only.
void flush_of_another_rank(bool right) {
  auto data = zeros(1), flag = zeros(1);
  far::put(data[next()], 1);
  far::flush(right ? next() : far::rank());
  far::atomic_store(flag[next()], 1);
  while (far::atomic_load(flag[far::rank()]) == 0) {
  }
  expect(far::get(data[far::rank()]) == 1, "the put to the other rank was not complete");
}

// What an asynchronous get reads is there when its future is ready.
void buffer_read_before_ready(bool right) {
  auto data = zeros(4);
  word buffer[4] = {9, 9, 9, 9};
  auto read = far::async_get(data[next()], buffer, 4);
  if (right) read.wait();
  bool good = std::all_of(buffer, buffer + 4, [](word w) { return w == 0; });
  read.wait();
  expect(good, "the buffer was not filled yet");
}

// The source of an asynchronous put belongs to the library until its future is ready.
void source_changed_before_ready(bool right) {
  auto data = zeros(4);
  word buffer[4] = {1, 1, 1, 1};
  auto written = far::async_put(data[next()], buffer, 4);
  if (right) written.wait();
  std::fill(buffer, buffer + 4, 2);
  written.wait();
  far::barrier();
  word got[4];
  far::get(data[far::rank()], got, 4);
  expect(std::all_of(got, got + 4, [](word w) { return w == 1; }), "another value was sent");
}

// Reading and writing back is two operations.
void increment_by_get_and_put(bool right) {
  auto counter = zeros(1);
  for (int i = 0; i < 4; ++i) {
    if (right)
      far::fetch_add(counter[0], 1);
    else
      far::put(counter[0], far::get(counter[0]) + 1), far::flush();
  }
  far::barrier();
  expect(far::get(counter[0]) == 4 * far::nprocs(), "an increment was lost");
}

// A lock is taken by one atomic, not by two.
void lock_tested_then_set(bool right) {
  auto lock = zeros(1), inside = zeros(1);
  for (int i = 0; i < 3; ++i) {
    for (;;) {
      if (right) {
        if (far::compare_swap(lock[0], 0, 1) == 0) break;
      } else if (far::atomic_load(lock[0]) == 0) {
        far::atomic_store(lock[0], 1);
        break;
      }
    }
    expect(far::fetch_add(inside[0], 1) == 0, "two ranks hold the lock");
    far::fetch_sub(inside[0], 1);
    far::atomic_store(lock[0], 0);
  }
}

// The lock is free before what it protects has arrived.
void unlock_without_flush(bool right) {
  auto lock = zeros(1), value = zeros(1);
  for (int i = 0; i < 3; ++i) {
    while (far::compare_swap(lock[0], 0, 1) != 0) {
    }
    far::put(value[0], far::get(value[0]) + 1);
    if (right) far::flush();
    far::atomic_store(lock[0], 0);
  }
  far::barrier();
  expect(far::get(value[0]) == 3 * far::nprocs(), "an increment under the lock was lost");
}

// Two puts to the same place have no order without a flush between.
void two_puts_to_one_place(bool right) {
  auto data = zeros(1);
  far::put(data[next()], 1);
  if (right) far::flush();
  far::put(data[next()], 2);
  far::barrier();
  expect(far::get(data[far::rank()]) == 2, "the first put came last");
}

// An object of several words changes word by word.
void torn_pair(bool right) {
  struct pair {
    word a, b;
  };
  auto memory = zeros(4);
  auto at = far::pointer_cast<pair>(memory[0]);
  for (word i = 1; i <= 6; ++i) {
    if (far::rank() == 0) far::put(at, pair{i, i}), far::flush();
    if (right) far::barrier();
    pair seen = far::get(at);
    expect(seen.a == seen.b, "half of a pair was seen");
    if (right) far::barrier();
  }
}

// Memory is given back when nobody reads it any more.
void freed_while_others_read(bool right) {
  far::ptr<word> at = nullptr;
  if (far::rank() == 0) at = far::make<word>(7);
  at = far::broadcast(at, 0);
  word seen = far::rank() == 0 ? 7 : far::get(at);
  if (right) far::barrier();
  if (far::rank() == 0) {
    far::dealloc(at);
    far::make<word>(8);
  }
  expect(seen == 7, "the memory belonged to something else already");
}

// A put may land until it is flushed, also in memory that another rank has freed.
void put_lands_after_the_free(bool right) {
  auto data = zeros(16), done = zeros(1);
  if (far::rank() == 1) {
    for (int i = 0; i < 16; ++i) far::put(data[0] + i, 7);
    if (right) far::flush();
    far::atomic_store(done[0], 1);
  }
  if (far::rank() == 0) {
    while (far::atomic_load(done[0]) == 0) {
    }
    far::dealloc(data[0]);
  }
  far::barrier();
}

// The same, and the memory is part of something else when the put lands.
void put_lands_in_memory_used_again(bool right) {
  auto data = zeros(16), done = zeros(1);
  if (far::rank() == 1) {
    for (int i = 0; i < 16; ++i) far::put(data[0] + i, 7);
    if (right) far::flush();
    far::atomic_store(done[0], 1);
  }
  if (far::rank() == 0) {
    while (far::atomic_load(done[0]) == 0) {
    }
    far::dealloc(data[0]);
    auto again = far::alloc<word>(16);
    expect(again == data[0], "the test needs the same memory again");
    far::put(again, 8);
    far::flush();
  }
  far::barrier();
}

// The pointer to an element is read, and then the element, which another rank frees between.
void get_after_free(bool right) {
  auto data = zeros(1);
  if (right && far::rank() != 0) far::get(data[0]);
  far::barrier();
  if (far::rank() == 0) far::dealloc(data[0]);
  far::barrier();
  if (!right && far::rank() != 0) far::get(data[0]);
}

void asynchronous_get_after_free(bool right) {
  auto data = zeros(1);
  if (far::rank() == 1) {
    word value = 0;
    auto read = far::async_get(data[0], &value, 1);
    if (right) read.wait();
    far::barrier();
    read.wait();
  } else {
    far::barrier();
  }
  if (far::rank() == 0) far::dealloc(data[0]);
  far::barrier();
}

void atomic_after_free(bool right) {
  auto data = zeros(1);
  if (right) far::fetch_add(data[0], 1);
  far::barrier();
  if (far::rank() == 0) far::dealloc(data[0]);
  far::barrier();
  if (!right) far::fetch_add(data[0], 1);
}

void memory_of_any_rank_after_free(bool right) {
  far::ptr<word> at;
  if (far::rank() == 0) at = far::alloc_on<word>(1, 3);
  at = far::broadcast(at, 0);
  far::barrier();
  if (right && far::rank() == 1) far::atomic_load(at + 2);
  far::barrier();
  if (far::rank() == 0) far::dealloc(at);
  far::barrier();
  if (!right && far::rank() == 1) far::atomic_load(at + 2);
}

void freed_twice(bool right) {
  auto data = zeros(1);
  if (far::rank() == 1) far::dealloc(data[0]);
  far::barrier();
  if (!right && far::rank() == 0) far::dealloc(data[0]);
}

// The rank that owns the memory, and may load and store it, is not asked when another one frees it.
void owner_loads_what_another_rank_freed(bool right) {
  auto data = zeros(8), other = zeros(1);
  if (far::rank() == 1) far::dealloc(data[0]);
  if (right) far::barrier();
  bool good = true;
  if (!right && far::rank() == 0) {
    for (int i = 0; i < 100; ++i) {
      far::atomic_load(other[0]);
      good = good && data[0].local()[7] == 0;
    }
  }
  far::barrier();
  expect(good, "the memory was freed");
}

// The last element of one array is not followed by the next array.
void beyond_the_end(bool right) {
  auto first = far::alloc<word>(8);
  auto second = far::alloc<word>(8);
  word values[9] = {};
  far::put(first, values, right ? 8 : 9);
  far::flush();
  far::dealloc(first);
  far::dealloc(second);
}

// A slot may be written again when its reader has said that it is done.
void slot_reused_before_it_was_read(bool right) {
  auto slot = zeros(1), full = zeros(1), taken = zeros(1);
  for (word i = 1; i <= 4; ++i) {
    if (right)
      while (far::atomic_load(taken[far::rank()]) != i - 1) {
      }
    far::put(slot[next()], i);
    far::flush();
    far::atomic_store(full[next()], i);
    while (far::atomic_load(full[far::rank()]) < i) {
    }
    expect(far::get(slot[far::rank()]) == i, "a message was overwritten before it was read");
    far::atomic_store(taken[previous()], i);
  }
}

struct mistake {
  void (*body)(bool right);
  const char* says = "";  ///< what stands in the report of a run that fails, as grep -E finds it
};

const std::map<std::string, mistake> cases = {
    {"flag_without_flush", {flag_without_flush}},
    {"read_before_barrier", {read_before_barrier}},
    {"all_reduce_taken_for_a_barrier", {all_reduce_taken_for_a_barrier}},
    {"flush_of_another_rank", {flush_of_another_rank}},
    {"buffer_read_before_ready", {buffer_read_before_ready}},
    {"source_changed_before_ready", {source_changed_before_ready}},
    {"increment_by_get_and_put", {increment_by_get_and_put}},
    {"lock_tested_then_set", {lock_tested_then_set}},
    {"unlock_without_flush", {unlock_without_flush}},
    {"two_puts_to_one_place", {two_puts_to_one_place}},
    {"torn_pair", {torn_pair}},
    {"freed_while_others_read", {freed_while_others_read}},
    {"put_lands_after_the_free",
     {put_lands_after_the_free,
      "#[0-9]+ of rank 1, which puts 8 B at rank 0 \\+0x[0-9a-f]+ since step [0-9]+, lands at step "
      "[0-9]+ in memory which rank 0 freed at step [0-9]+ \\(a block of 128 B at \\+0x[0-9a-f]+, "
      "which rank 0 allocated at step [0-9]+\\)"}},
    {"put_lands_in_memory_used_again",
     {put_lands_in_memory_used_again,
      "#[0-9]+ of rank 1, which puts 8 B .* in memory which rank 0 freed at step [0-9]+; meanwhile "
      "it is part of a block of 128 B"}},
    {"get_after_free",
     {get_after_free,
      "rank [12] reads 8 B at rank 0 \\+0x[0-9a-f]+, which rank 0 freed at step [0-9]+ \\(a block "
      "of 8 B"}},
    {"asynchronous_get_after_free",
     {asynchronous_get_after_free,
      "#[0-9]+ of rank 1, which reads 8 B at rank 0 .* lands at step [0-9]+ in memory which rank 0 "
      "freed at step"}},
    {"atomic_after_free",
     {atomic_after_free,
      "rank [0-2] adds 8 B at rank 0 \\+0x[0-9a-f]+, which rank 0 freed at step"}},
    {"memory_of_any_rank_after_free",
     {memory_of_any_rank_after_free,
      "rank 1 loads 8 B at rank 1 \\+0x[0-9a-f]+, which rank 0 freed at step [0-9]+ \\(a block of "
      "24 B at \\+0x[0-9a-f]+, which rank 0 allocated"}},
    {"freed_twice",
     {freed_twice,
      "rank 0: dealloc\\(0:0x[0-9a-f]+\\): no allocation begins there \\(rank 1 freed it at step "
      "[0-9]+ \\(a block of 8 B"}},
    {"owner_loads_what_another_rank_freed",
     {owner_loads_what_another_rank_freed, "the memory was freed"}},
    {"beyond_the_end",
     {beyond_the_end,
      "rank [0-2] puts [0-9]+ B at rank [0-2] \\+0x[0-9a-f]+, which runs [0-9]+ B beyond the end "
      "of a block of 64 B"}},
    {"slot_reused_before_it_was_read", {slot_reused_before_it_was_read}},
};

}  // namespace

int main(int argc, char** argv) {
  std::string name = argc > 1 ? argv[1] : "--list";
  if (name == "--list") {
    for (const auto& [key, body] : cases) std::printf("%s\n", key.c_str());
    return 0;
  }
  auto chosen = cases.find(name);
  std::string form = argc > 2 ? argv[2] : "";
  if (chosen != cases.end() && form == "says") {
    std::printf("%s\n", chosen->second.says);
    return 0;
  }
  if (chosen == cases.end() || (form != "right" && form != "wrong")) {
    std::fprintf(stderr, "usage: wrong_sim NAME right|wrong|says; --list names them\n");
    return 2;
  }
  return far::run(argc, argv, [&] { chosen->second.body(form == "right"); });
}
