// The simulated machine: the segments, the ranks as fibres, what is in flight between them, and the
// loop that lets one rank after another go on as the adversary likes.
//
//   a rank's operation:   announced --others may run--> performed --> the rank goes on
//   a put:                in flight --any time until its rank's flush--> landed, piece by piece
//   an asynchronous one:  in flight --> performed --asked for--> its result is given
//   a signal:             in flight --> counted; a rank that waits for it may go on
//
// Invariant: memory changes in deliver(), in atomics, and through ptr::local() only; every change
// that one rank can see of another is between two steps.
#pragma once

#include <farside/backend/sim/adversary.hpp>
#include <farside/backend/sim/allocations.hpp>
#include <farside/backend/sim/explorer.hpp>
#include <farside/backend/sim/fibre.hpp>
#include <farside/backend/sim/trace.hpp>
#include <farside/backend/sim/unlanded.hpp>
#include <farside/base/function_ref.hpp>

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// Something between its rank and its target.
struct event {
  enum kind { put, get, atomic, signal } what;
  rank_t origin, target;
  std::size_t offset, bytes;
  std::uint64_t number = 0;           ///< among those of its origin
  std::vector<std::byte> data{};      ///< put: what lands; get: what was read
  const std::byte* source = nullptr;  ///< asynchronous put: where the data still lies
  std::byte* result = nullptr;        ///< asynchronous get and atomic: where the data shall go
  /// atomic: changes the word, gives the old one; put: adds, instead of replacing
  std::function<void(void*, void*)> change{};
  bool performed = false;
  std::weak_ptr<event> other_half{};  ///< a put: what was cut off within a word
  int block = -1;                     ///< see world::enter_block
  std::uint64_t issued = 0;           ///< the step
  source_place place{};

  bool overlaps(rank_t rank, std::size_t begin, std::size_t end) const {
    return target == rank && offset < end && begin < offset + bytes;
  }
};

enum class outcome { ok, failed, deadlock, steps, faulted, seen };

inline const char* name_of(outcome o) {
  constexpr const char* names[] = {"ok", "failed", "deadlock", "steps", "faulted", "seen"};
  return names[static_cast<std::size_t>(o)];
}

class world {
 public:
  world(rank_t nprocs, std::size_t segment);
  world(const world&) = delete;
  ~world();

  /// Runs `body(rank)` on all ranks, once or for every schedule; the exit status of the job.
  int run(function_ref<int(rank_t)> body);

  rank_t nprocs() const { return static_cast<rank_t>(ranks_.size()); }
  std::size_t segment_size() const { return segment_; }
  char* memory(rank_t rank, std::size_t offset) const { return base_ + rank * stride_ + offset; }

  // What ranks do. Each is a step: others run first, if the adversary likes.
  void put(rank_t me, rank_t target, std::size_t offset, const void* from, std::size_t bytes);
  void get(rank_t me, rank_t target, std::size_t offset, void* to, std::size_t bytes);
  /// A put that adds: `add(at, addends, bytes)`.
  using addition = void (*)(void* at, const void* addends, std::size_t bytes);
  using events = std::vector<std::shared_ptr<event>>;
  events async_put(rank_t me, rank_t target, std::size_t offset, const void* from,
                   std::size_t bytes);
  events async_accumulate(rank_t me, rank_t target, std::size_t offset, const void* from,
                          std::size_t bytes, addition add);
  events async_get(rank_t me, rank_t target, std::size_t offset, void* to, std::size_t bytes);
  void atomic(rank_t me, rank_t target, std::size_t offset, std::size_t bytes, const char* name,
              bool writes, function_ref<void(void* word)> change);
  events async_atomic(rank_t me, rank_t target, std::size_t offset, std::size_t bytes, void* old,
                      std::function<void(void*, void*)> change);
  /// How many of `n` elements are added now, before somebody else adds to the next one.
  std::size_t how_many(std::size_t n) {
    constexpr chance blocked = 48;
    return adversary_.active() && adversary_.happens(blocked) ? adversary_.below(n + 1) : n;
  }
  void flush(rank_t me, std::optional<rank_t> target);
  void signal(rank_t me, rank_t target, std::size_t offset);
  bool await(rank_t me, std::size_t offset, std::uint64_t count);
  void yield(rank_t me) { step(me, {}); }
  void pause(rank_t me);

  /// Whether an asynchronous operation may be taken for complete; then its results are given.
  bool ask(rank_t me, events& parts);
  void complete(events& parts);

  std::int64_t lost_rank() const { return dead_ >= 0 && steps_ > dead_at_ + grace ? dead_ : -1; }
  bool allocation_fails();

  // What the heaps say (freed.hpp).
  void note_heap(std::size_t begin, std::size_t end) { blocks_.watch(begin, end); }
  void note_allocated(rank_t me, rank_t rank, std::size_t offset, std::size_t bytes);
  std::string note_freed(rank_t me, rank_t rank, std::size_t offset);
  void heap_access(rank_t me, bool begins) { ranks_[me].heap_access = begins; }

  /// A rank has ended by an exception that a planned fault explains.
  void excuse(rank_t me) { ranks_[me].excused = true; }

  void terminated(rank_t me, bool excusable);

  [[noreturn]] void fail_run(const std::string& why) {
    std::fprintf(stderr, "sim: %s\n", why.c_str());
    end_run(outcome::failed);
  }

  /// What belongs to a rank beyond its stack: `enter` is called with it whenever the rank goes on.
  struct binding {
    void* context = nullptr;
    void (*enter)(void* context) = nullptr;
    std::string (*describe)(void* context) = nullptr;  ///< what it waits for
    /// 0: it does not wait; else a number that stays the same as long as it stands still.
    std::uint64_t (*stands)(void* context) = nullptr;
    std::string (*explain)() = nullptr;  ///< why the ranks of this process cannot go on; or empty
  };
  void bind(rank_t me, const binding& to) { ranks_[me].bound = to; }

  // Explored parts: all ranks meet before and after, and between all schedules are tried.
  void enter_explored(rank_t me) { meet(me, true); }
  void leave_explored(rank_t me) { meet(me, false); }

  /// Looking at the clock takes time too: some wait for it to go on.
  std::uint64_t now_ns() { return steps_ * ns_per_step + (slept_ns_ += 1000); }
  /// Time passes for all; the rank that runs is the one that sleeps.
  void sleep(std::uint64_t ns) {
    slept_ns_ += ns;
    yield(running_);
  }
  rank_t running() const { return running_; }

 private:
  static constexpr std::uint64_t ns_per_step = 20'000;
  static constexpr std::uint64_t grace = 500;        ///< steps until a death can be noticed
  static constexpr std::uint64_t patience = 50'000;  ///< steps until the launcher ends the job
  /// Steps between two looks at what ranks wait for.
  static constexpr std::uint64_t look_every = 16384;
  /// What unoptimised programs need, as long as ranks are few; only what is touched is memory.
  std::size_t stack_bytes() const { return std::size_t{nprocs() <= 64 ? 8u : 1u} << 20; }
  static constexpr std::size_t most_in_flight = 256;  ///< of one rank, so that a run stays fast
  static constexpr std::size_t no_index = ~std::size_t{0};
  static constexpr std::size_t page = 65536;  ///< segments begin at multiples of it

  enum class state { runnable, blocked, finished, dead };

  struct rank_state {
    fibre stack;
    state now = state::runnable;
    std::size_t place = no_index;  ///< in runnable_
    footprint next;                ///< of the operation it has announced
    std::size_t awaited_word = 0;
    std::uint64_t awaited_count = 0;
    bool meets = false;             ///< blocked until all ranks are at the explored part
    std::function<bool()> until{};  ///< blocked until something of its own has been performed
    bool excused = false;
    bool heap_access = false;       ///< what it does now is done by the heaps, to words of theirs
    bool polls = false;             ///< a round of a loop that waits has just ended
    unsigned idle_rounds = 0;       ///< rounds in which it polled, and no memory changed
    std::uint64_t round_began = 0;  ///< what `written_` was then
    binding bound;
    events in_flight;
    std::size_t busy_place = no_index;  ///< in busy_
    std::uint64_t issued = 0;
    std::uint64_t turns = 0;   ///< steps of its own
    std::uint64_t stands = 0;  ///< see stands_still: what it said, and its turns then
    std::uint64_t stands_turns = 0;
  };

  /// A word that an atomic has changed, as gets of other ranks may still see it (docs: an atomic
  /// may be overtaken by a later get of its own rank).
  struct veil {
    rank_t origin, target;
    std::size_t offset, bytes;
    std::uint64_t old;
  };

  struct entry_argument {
    world* where;
    rank_t rank;
  };

  outcome one_run();
  void reset();
  static void rank_main(void* argument);
  void ended(rank_t me, int status);
  [[noreturn]] void end_run(outcome how);
  void write_report(bool complete);
  void explain_deadlock() const;
  void explain_waits() const;
  bool stands_still();
  void note_unlanded(rank_t me, rank_t target, std::size_t begin, std::size_t end,
                     const source_place& at);

  void step(rank_t me, const footprint& touches) {
    ++operations_;
    ++ranks_[me].turns;
    ranks_[me].next = touches;
    schedule(me);
  }
  void schedule(rank_t me);
  void resume(rank_t me, rank_t next);
  rank_t choose(rank_t me);
  std::optional<rank_t> explore();
  bool polls_in_vain(const rank_state& r) const;
  void play_faults();
  void stop(rank_t rank);
  bool exploring() const { return explored_ && settings_.exhaustive != 0; }
  void meet(rank_t me, bool entering);

  void block_until(rank_t me, std::function<bool()> done);
  void make_runnable(rank_t rank);
  void make_unrunnable(rank_t rank, state now);
  void wake_blocked();

  using pieces = std::vector<std::pair<std::size_t, std::size_t>>;
  pieces cut(std::size_t offset, std::size_t bytes);
  std::size_t cut_word(std::size_t offset, pieces& of);
  std::shared_ptr<event> launch(rank_t me, event e);
  void deliver_some();
  bool deliver_any();
  bool deliver_signal();
  void deliver(rank_t origin, std::size_t index) { perform(*take_out(origin, index)); }
  std::shared_ptr<event> take_out(rank_t origin, std::size_t index);
  void perform(event& e);
  void land_halves(rank_t target, std::size_t begin, std::size_t end, const event* cause = nullptr);
  void land_own(rank_t me, rank_t target, std::size_t begin, std::size_t end);
  void read(rank_t me, rank_t target, std::size_t offset, void* to, std::size_t bytes,
            const source_place& at = {});
  int enter_block(rank_t me, rank_t target, std::size_t offset, std::size_t bytes,
                  const char* does);
  void check_block(rank_t me, rank_t target, std::size_t offset, std::size_t bytes,
                   const char* does, int block);
  void check_landing(const event& e);
  void lift_veils(rank_t origin);
  void lift_veils(rank_t target, std::size_t begin, std::size_t end);

  template <class... Parts>
  void note(const char* form, const Parts&... parts) {
    if (trace_ && (settings_.exhaustive == 0 || explored_)) trace_.line(steps_, form, parts...);
  }

  settings settings_;
  char* base_ = nullptr;
  std::size_t segment_ = 0, stride_ = 0;
  std::vector<rank_state> ranks_;
  std::vector<entry_argument> arguments_;
  std::vector<rank_t> runnable_;
  std::vector<rank_t> busy_;  ///< ranks with something in flight
  std::vector<veil> veils_;
  events halves_;  ///< in flight, while another part of the same word has landed
  allocated_blocks blocks_;
  adversary adversary_;
  explorer explorer_;
  trace trace_;
  unlanded_reads unlanded_;
  function_ref<int(rank_t)>* body_ = nullptr;
  fibre main_;
  rank_t running_ = 0;
  outcome how_ = outcome::ok;
  bool explored_ = false, was_explored_ = false, fault_played_ = false;
  rank_t meeting_ = 0;
  std::int64_t dead_ = -1;
  std::uint64_t dead_at_ = 0;
  std::uint64_t steps_ = 0, slept_ns_ = 0, operations_ = 0, deliveries_ = 0, switches_ = 0;
  std::uint64_t allocations_ = 0, runs_ = 0, tried_ = 0, all_steps_ = 0;
  rank_t finished_ = 0, noticed_ = 0;
  std::uint64_t changes_ = 0, changes_seen_ = 0;  ///< of memory, by atomics and what has landed
  std::uint64_t written_ = 0;                     ///< the same without gets
  std::optional<std::pair<rank_t, int>> failed_;  ///< the rank that failed, and its status
};

/// The world that runs in this process, for the clock.
inline world* running_world = nullptr;

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
