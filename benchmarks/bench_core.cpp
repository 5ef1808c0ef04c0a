// What the core operations cost beside the floor: plain shared memory where ranks share it, the
// raw calls of MPI or OpenSHMEM where they do not. README.md says how to read the names.

#include "access.hpp"
#include "caches.hpp"
#include "harness.hpp"

#include <bit>
#include <memory>
#include <random>

namespace far::bench {
namespace {

/// Which ranks access which memory.
enum class partners { all, pair, self };
constexpr const char* names[] = {"all", "pair", "self"};

/// The rank that this one works on; none if it has no partner in a pair.
std::optional<rank_t> choose(partners who, std::minstd_rand& random) {
  if (who == partners::self) return rank();
  if (who == partners::pair)
    return (rank() ^ 1) < nprocs() ? std::optional(rank() ^ 1) : std::nullopt;
  return static_cast<rank_t>(random() / 7 % nprocs());
}

/// How much memory is touched by all ranks together, and what that is called.
struct footprint {
  const char* name;
  std::size_t bytes;
};

/// Places in an order computed beforehand, for one way to access them. Slices go on where the last
/// one ended, of ours or of the floor, so that nothing is in the cache only because the other has just used
/// it.
template <class By>
class walk {
 public:
  walk(By& by, const std::vector<ptr<word>>& places) : mask_(places.size() - 1) {
    for (auto p : places) places_.push_back(by.at(p));
  }

  /// What a loop keeps in registers.
  struct view {
    const typename By::place* places;
    std::size_t mask;
    typename By::place operator[](std::size_t i) const { return places[i & mask]; }
  };
  view all() const { return {places_.data(), mask_}; }

 private:
  std::vector<typename By::place> places_;
  std::size_t mask_;
};
template <class By>
using view = typename walk<By>::view;

// ---- the loops that are measured --------------------------------------------------------------

/// Each get's address depends on the value that the last one read, which is 0.
struct chained_gets {
  template <class By>
  void operator()(By& by, view<By> where, std::size_t begin, std::size_t n) const {
    word value = 0;
    for (std::size_t i = 0; i < n; ++i) value = by.get(By::after(where[begin + i], value));
    keep(value);
  }
};

/// The same beside a floor that keeps what follows from running ahead, as gets of ours do.
struct chained_ordered_gets {
  template <class By>
  void operator()(By& by, view<By> where, std::size_t begin, std::size_t n) const {
    word value = 0;
    for (std::size_t i = 0; i < n; ++i) {
      value = by.get(By::after(where[begin + i], value));
      if constexpr (std::same_as<By, by_cpu>) std::atomic_thread_fence(std::memory_order_acquire);
    }
    keep(value);
  }
};

/// What a rank does between two atomics: nothing; or something that takes a while, each time
/// another one of up to 256 steps. Raw atomics of Open MPI are locks that ranks spin for, and all
/// ranks' locks lie side by side: a rank that comes back at once finds the lock still in its cache, and
/// a moment later it may be gone, so that the same two calls take now 80 ns and now 140
/// (README.md). With pauses all cases are met, and a step more makes it longer, each time.
template <bool Made>
class pauses {
 public:
  [[gnu::always_inline]] void operator()() {
    if (!Made) return;
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    for (std::uint64_t left = state_ >> 56; left > 0; --left) asm volatile("");
  }

 private:
  std::uint64_t state_ = rank() + 1;
};

/// As chained_gets, with fetch_add.
template <class Pauses>
struct chained_adds {
  template <class By>
  void operator()(By& by, view<By> where, std::size_t begin, std::size_t n) const {
    word value = 0;
    Pauses pause;
    for (std::size_t i = 0; i < n; ++i) {
      value = by.fetch_add(By::after(where[begin + i], value), value);
      pause();
    }
    keep(value);
  }
};

/// Calls `each(by, place)` on one place after another, independently.
template <class One, class Pauses = pauses<false>>
struct independent {
  One each;
  Pauses between{};
  template <class By>
  void operator()(By& by, view<By> where, std::size_t begin, std::size_t n) const {
    One one = each;  // its captures in registers, too
    Pauses pause = between;
    for (std::size_t i = 0; i < n; ++i) {
      one(by, where[begin + i]);
      pause();
      asm volatile("" ::: "memory");
    }
  }
};

/// Compare-and-swaps of a word that others may change too.
template <class Pauses>
struct compare_swaps {
  bool until_success;
  template <class By>
  void operator()(By& by, view<By> where, std::size_t begin, std::size_t n) const {
    auto place = where[begin];
    word expected = 0;
    Pauses pause;
    for (std::size_t i = 0; i < n; ++i) {
      for (;;) {
        word seen = by.compare_swap(place, expected, expected + 1);
        pause();
        bool done = seen == expected;
        expected = done ? seen + 1 : seen;
        if (done || !until_success) break;
      }
    }
    keep(expected);
  }
};

// ---- the measurements -------------------------------------------------------------------------

template <class Floor>
class core_benchmark {
  using usual_pauses = pauses<atomics_are_locks<Floor>>;

 public:
  core_benchmark(suite& s, Floor floor) : suite_(s), floor_(floor) {}

  void run() {
    for (footprint f : footprints()) {
      memory far_memory(f.bytes / nprocs());
      if (!far_memory.whole) {
        suite_.say(text("-- segments have no room for ", human_size(static_cast<double>(f.bytes)),
                        ": nothing is measured ", f.name, "; raise FARSIDE_SEGMENT"));
        continue;
      }
      if (std::string_view(f.name) == "in L1") {
        words(f, partners::self, far_memory);
        continue;
      }
      for (partners who : {partners::all, partners::pair, partners::self}) {
        if (nprocs() == 1 && who != partners::self) continue;
        words(f, who, far_memory);
      }
      blocks(f, far_memory);
    }
    contended();
    synchronisation();
  }

 private:
  /// The same number of bytes, all zero, on every rank.
  struct memory {
    explicit memory(std::size_t bytes) : words(std::bit_floor(bytes) / sizeof(word)) {
      try {
        mine = pointer_cast<word>(alloc<line>(words / 8));
      } catch (const allocation_error&) {
      }
      ranks = all_gather(mine);
      whole = std::find(ranks.begin(), ranks.end(), nullptr) == ranks.end();
      if (!whole) return;
      std::vector<word> zeros(std::min<std::size_t>(words, 1 << 17));
      for (std::size_t done = 0; done < words; done += zeros.size())
        put(mine + static_cast<std::ptrdiff_t>(done), zeros.data(), zeros.size());
      barrier();
      // Each process finds the pages of the others once: no measurement's first slices do.
      for (ptr<word> segment : ranks)
        for (std::size_t at = 0; at < words; at += 4096 / sizeof(word))
          get(segment + static_cast<std::ptrdiff_t>(at));
      barrier();
    }
    ~memory() {
      barrier();
      dealloc(mine);
    }
    memory(const memory&) = delete;

    struct line {
      alignas(64) word words[8];
    };
    std::size_t words;
    ptr<word> mine;
    std::vector<ptr<word>> ranks;
    bool whole = false;
  };

  std::vector<footprint> footprints() const {
    caches here = caches_of_this_machine();
    if constexpr (!std::same_as<Floor, by_cpu>) return {{"in cache", here.last / 8}};
    if (suite_.asks_for("in L1")) return {{"in L1", here.first / 4 * nprocs()}};
    return {{"in cache", here.last / 8}, {"beyond cache", 4 * here.last}};
  }

  /// Measures `loop` at `places`.
  template <class Loop>
  void compare(const std::string& name, measure what, const std::vector<ptr<word>>& places,
               Loop loop) {
    if (!suite_.wants(name)) return;
    walk<by_library> our_walk(library_, places);
    walk<Floor> floor_walk(floor_, places);
    std::size_t next = 0;
    auto part = [&](auto& by, auto& where) {
      return [&](std::size_t n) {
        if (places.size() > 0) loop(by, where.all(), next, n);
        next += n;
      };
    };
    suite_.compare(name, what, part(library_, our_walk), part(floor_, floor_walk));
  }

  /// 8-byte operations at random places.
  void words(footprint f, partners who, const memory& far_memory) {
    std::vector<ptr<word>> places = random_places(f, who, far_memory);
    auto name = [&](const char* operation) {
      return text(operation, ", ", names[static_cast<int>(who)], ", ", f.name);
    };
    const word zero = opaque(word{0});
    compare(name("get 8B"), time_of_one(), places, chained_gets());
    if (std::string_view(f.name) == "in L1") {
      compare(name("get 8B beside ordered load"), time_of_one(), places, chained_ordered_gets());
      compare(name("get 8B, independent"), time_of_one(), places,
              independent([](auto& by, auto place)
                              __attribute__((always_inline)) { keep(by.get(place)); }));
    }
    compare(name("put 8B"), time_of_one(), places,
            independent([zero](auto& by, auto place)
                            __attribute__((always_inline)) { by.put(place, zero); }));
    compare(name("put 8B + flush"), time_of_one(), places,
            independent([zero](auto& by, auto place)
                            __attribute__((always_inline)) { by.put_flush(place, zero); }));
    compare(name("fetch_add"), time_of_one(), places, chained_adds<usual_pauses>());
    compare(name("fetch_add, result unused"), time_of_one(), places,
            independent([zero](auto& by, auto place)
                            __attribute__((always_inline)) { by.fetch_add(place, zero); },
                        usual_pauses()));
  }

  /// As many places as lines of the whole memory, at least; none for a rank without a partner.
  std::vector<ptr<word>> random_places(footprint f, partners who, const memory& far_memory) {
    std::minstd_rand random(rank() + 1);
    std::vector<ptr<word>> places;
    std::size_t count = std::max<std::size_t>(std::bit_ceil(f.bytes / 64 / nprocs()), 256);
    for (std::size_t i = 0; i < count; ++i)
      if (auto target = choose(who, random)) {
        std::size_t index =
            (static_cast<std::size_t>(random()) << 16 ^ random()) % far_memory.words;
        places.push_back(far_memory.ranks[*target] + static_cast<std::ptrdiff_t>(index));
      }
    return places;
  }

  /// Copies between far memory and a buffer of this process, block after block.
  void blocks(footprint f, const memory& far_memory) {
    partners who = nprocs() == 1 ? partners::self : partners::pair;
    std::minstd_rand random;
    auto target = choose(who, random);
    std::vector<word> buffer((std::size_t{4} << 20) / sizeof(word));
    for (std::size_t bytes : {8, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304}) {
      if (bytes > far_memory.words * sizeof(word) ||
          (std::string_view(f.name) == "beyond cache" && bytes < 4096))
        continue;
      std::vector<ptr<word>> places;
      for (std::size_t at = 0; target && at < far_memory.words; at += bytes / sizeof(word))
        places.push_back(far_memory.ranks[*target] + static_cast<std::ptrdiff_t>(at));
      std::string size = bytes < 1024      ? text(bytes, "B")
                         : bytes < 1048576 ? text(bytes >> 10, "KiB")
                                           : text(bytes >> 20, "MiB");
      auto name = [&](const char* operation) {
        return text("bandwidth ", operation, " ", size, ", ", names[static_cast<int>(who)], ", ",
                    f.name);
      };
      compare(name("get"), bandwidth(bytes), places,
              independent([to = buffer.data(), bytes](auto& by, auto place)
                              __attribute__((always_inline)) { by.read(place, to, bytes); }));
      compare(name("put"), bandwidth(bytes), places,
              independent([from = buffer.data(), bytes](auto& by, auto place)
                              __attribute__((always_inline)) { by.write(place, from, bytes); }));
    }
  }

  /// Atomics on one word each: of rank 0 for all, of the even rank for a pair.
  void contended() {
    memory far_memory(256);
    for (partners who : {partners::all, partners::pair, partners::self}) {
      if (nprocs() == 1 && who != partners::self) continue;
      rank_t home = who == partners::all ? 0 : who == partners::pair ? rank() & ~rank_t{1} : rank();
      bool idle = who == partners::pair && (rank() ^ 1) >= nprocs();
      std::vector<ptr<word>> places(idle ? 0 : 1, far_memory.ranks[home]);
      std::string partner = names[static_cast<int>(who)];
      on_one_word<usual_pauses>(partner, places);
      if (atomics_are_locks<Floor> && suite_.asks_for("without pauses"))
        on_one_word<pauses<false>>(partner + ", without pauses", places);
    }
  }
  template <class Pauses>
  void on_one_word(const std::string& how, const std::vector<ptr<word>>& places) {
    auto name = [&](const char* operation) { return text(operation, ", ", how); };
    auto add = [](auto& by, auto place) __attribute__((always_inline)) { by.fetch_add(place, 1); };
    compare(name("fetch_add, one word"), time_of_one(), places, independent(add, Pauses()));
    compare(name("compare_swap, one try"), time_of_one(), places, compare_swaps<Pauses>{false});
    compare(name("compare_swap, until success"), time_of_one(), places,
            compare_swaps<Pauses>{true});
  }

  void synchronisation() {
    suite_.compare(
        "flush, nothing to flush", time_of_one(),
        [this](std::size_t n) {
          while (n-- > 0) library_.flush();
        },
        [this](std::size_t n) {
          while (n-- > 0) floor_.flush();
        });
    suite_.compare(
        "barrier", time_of_one(),
        [this](std::size_t n) {
          while (n-- > 0) library_.barrier();
        },
        [this](std::size_t n) {
          while (n-- > 0) floor_.barrier();
        });
  }

  suite& suite_;
  by_library library_;
  Floor floor_;
};

void run(suite& s) {
  bool shared = true;
  for (rank_t other = 0; other < nprocs(); ++other)
    shared = shared && native().address(other, 4096) != nullptr;
#if defined(FARSIDE_USE_SHMEM)
  shared = false;  // with one rank all memory is its own, but the calls are OpenSHMEM's
#elif defined(FARSIDE_USE_MPI)
  shared = native().coherent();
#endif
  if (!shared) {
#if defined(FARSIDE_USE_MPI) || defined(FARSIDE_USE_SHMEM)
    s.say("floor: the raw one-sided calls of MPI or OpenSHMEM");
    core_benchmark(s, by_calls()).run();
#endif
    return;
  }
  s.say("floor: plain loads and stores, std::atomic, memcpy");
  ptr<word> words;
  if (rank() == 0) {
    words = alloc<word>(16);
    for (int i = 0; i < 16; ++i) put(words + i, 0);
  }
  words = broadcast(words, 0);
  core_benchmark(s, by_cpu(words)).run();
}

}  // namespace
}  // namespace far::bench

int main(int argc, char** argv) {
  return far::run(argc, argv, [](int count, char** words) {
    return far::bench::main(
        count, words,
        "Measures get, put, atomics, flush, barrier and bandwidth beside their floor.",
        far::bench::run);
  });
}
