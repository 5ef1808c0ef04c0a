// The context: all state of one rank. A thread finds its rank's context through one
// thread-local pointer, so that ranks can be threads (or fibres) of one process.
#pragma once

#include <farside/backend/backend.hpp>
#include <farside/base/environment.hpp>
#include <farside/base/error.hpp>
#include <farside/base/job_board.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/detail/heap/local_heap.hpp>
#include <farside/core/detail/heap/remote_heap.hpp>
#include <farside/core/detail/leaks.hpp>
#include <farside/core/detail/object_registry.hpp>
#include <farside/core/detail/rank_values.hpp>
#include <farside/core/detail/segment_layout.hpp>
#include <farside/core/detail/team_block.hpp>
#include <farside/core/ptr.hpp>
#include <farside/core/statistics.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Something in flight that the progress engine looks after.
struct pending {
  virtual ~pending() = default;
  virtual bool poll() = 0;  ///< true when there is nothing left to do
  /// Whether it is a far operation that is not complete: one that may still touch far memory.
  virtual bool is_under_way() const { return false; }
};

/// A lock that costs nothing for single-threaded ranks.
class optional_mutex {
 public:
  explicit optional_mutex(bool needed) : needed_(needed) {}
  void lock() {
    if (needed_) mutex_.lock();
  }
  void unlock() {
    if (needed_) mutex_.unlock();
  }

 private:
  bool needed_;
  std::recursive_mutex mutex_;
};

struct container_state;
struct context;

/// What serves the messages of a rank (core/detail/messages/messenger.hpp).
struct message_service {
  virtual ~message_service() = default;
  /// Does what can be done now, and waits for no rank; whether that was anything.
  virtual bool serve() = 0;
  virtual bool inside_handler() const = 0;  ///< is the calling thread in a handler?
  virtual bool may_not_wait() const = 0;    ///< in one that may not wait?
  virtual void finish() = 0;                ///< collective: all messages are done
  virtual void stop() = 0;                  ///< ends its thread, if it has one
};

/// Set before main by programs that send messages anywhere: all others have none to look for, and
/// pay this one load when they wait.
inline constinit std::atomic<std::unique_ptr<message_service> (*)(context&)> make_message_service{
    nullptr};

struct context {
  /// Makes the back end of `start...`, then all that stands on it.
  template <class... Start>
  explicit context(thread_level level, const Start&... start);

  transport link;  ///< the back end
  counting counts;
  job::slot* slot;  ///< this rank's slot on the board, or `private_slot`
  /// What call_marker writes to: the slot's `waits` if calls may wait for their targets, else
  /// `unseen`.
  std::atomic<job::wait>* call_marks = nullptr;
  std::atomic<job::wait> unseen{};
  thread_level threads;
  optional_mutex mutex;  ///< guards the heap, the pending list and the counters
  local_heap heap;
  allocation_sites sites;  ///< where its blocks were asked for; checked builds
  remote_heap far_heap;
  std::shared_ptr<team_members> world;
  std::vector<std::shared_ptr<pending>> in_flight;
  std::size_t polling = 0;                   ///< threads that have taken it all, and look at it
  std::vector<container_state*> containers;  ///< those that live; core/detail/container.hpp
  object_registry objects;                   ///< how messages find them
  std::uint32_t teams = 0;                   ///< made here so far, besides the world
  std::vector<team_application> team_applications;  ///< to teams that this rank is to lead
  std::uint64_t introductions_due = 0;              ///< signals of leaders, over all teams
  rank_values values;                               ///< of far::rank_local
  job::slot private_slot{};
  std::string stats_target;  ///< FARSIDE_STATS
  attention attends = attention::poll;
  std::unique_ptr<message_service> messages_owner;
  std::atomic<message_service*> messages{nullptr};  ///< null in programs that send none
  bool oversubscribed = false;  ///< more ranks than cores: a rank that waits yields at once
  bool ended = false;
  bool secondary_failure = false;              ///< see is_secondary_failure()
  std::atomic<unsigned> undisturbed_depth{0};  ///< see undisturbed

  // The collective that this rank is in (core/detail/calls.hpp).
  // Guarded by `mutex`, as are the slot's copies of them.
  const char* call_name = nullptr;
  const char* call_file = "";
  std::uint32_t call_line = 0;
  const char* call_files[job::kept_calls] = {};  ///< of the slot's `calls`
  std::atomic<bool> in_call{false};
  void (*compares_calls)(context&, std::uint64_t number) = nullptr;  ///< in simulated jobs
  void compare_calls(std::uint64_t number) { compares_calls(*this, number); }
  bool simulated() const { return compares_calls != nullptr; }
  /// Whether the calling thread is inside a collective. Threads of a rank may be in collectives of
  /// different teams; simulated ranks share a thread.
  std::atomic<bool>& inside_call() {
    static constinit thread_local std::atomic<bool> of_thread{false};
    return threads == thread_level::multiple && !simulated() ? of_thread : in_call;
  }

  // What this rank waits for, as wait_marker has said it: calls inside the wait say other things.
  std::atomic<job::wait> wait_now{};
  std::atomic<const char*> wait_subject{nullptr};
  std::atomic<const char*> asked{nullptr};  ///< see owner_wait_marker
  std::atomic<bool> wait_told{true};        ///< the board has the names that belong to it

  /// Something was done while this rank waits: it does not stand still.
  void count_activity() {
    slot->activity.store(slot->activity.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  }

  /// Copies the names of what this rank is in to the board.
  void tell_names();
  rank_t pretended_nodes = 1;  ///< checked builds: see address_of()

  void use_slot(job::slot& s) {
    slot = &s;
    call_marks = link.async_progress() ? &unseen : &slot->waits;
  }

  /// Whether a launcher reads this rank's slot: it prints what the rank says there.
  bool launched() const { return slot != &private_slot; }

  /// Whether this rank fails only because another one has died: then it is not the first cause.
  bool is_secondary_failure() {
    if (!secondary_failure && link.lost_rank() >= 0) {
      secondary_failure = true;
      slot->secondary_failure.store(1);
    }
    return secondary_failure;
  }

  /// Whether a message was served.
  bool progress();

  /// What serves messages; null in programs that send none.
  message_service* service() {
    message_service* made = messages.load(std::memory_order_acquire);
    if (made == nullptr && make_message_service.load(std::memory_order_acquire) != nullptr)
      return start_service();
    return made;
  }
  [[gnu::cold]] message_service* start_service();

  /// One round of a wait loop: progress, yield, and an error once a rank has died. Whether a
  /// message was served.
  bool wait_round();
  /// A round where what is awaited comes soon: the first ones do not yield, if ranks have cores of
  /// their own. `rounds` counts them, from 0.
  bool wait_round(unsigned& rounds);
  /// A round without the progress of what this rank has begun: runs no continuations.
  void quiet_wait_round();
};

inline constinit thread_local context* current = nullptr;

/// The context of a process that is one rank, for the other threads of that rank.
inline std::atomic<context*> process_context{nullptr};

/// For a thread without a context: that of its process, if it may use it.
[[gnu::cold, gnu::noinline]] inline context& find_context() {
  context* shared = process_context.load(std::memory_order_acquire);
  if (shared == nullptr)
    raise(
        "the library was used where there is no far::runtime. Make one first ('far::runtime "
        "world(argc, argv);' at the beginning of main), and use nothing of far after it has gone.");
  if (shared->threads != thread_level::multiple)
    raise("a second thread of rank ", shared->link.rank(),
          " used the library, but its runtime was made for one thread. Ask for more: "
          "far::runtime world(argc, argv, {.threads = far::thread_level::multiple});");
  return *shared;  // not kept in `current`: this thread may outlive the runtime
}

/// The context of the calling thread's rank.
inline context& here() {
  context* c = current;
  if (c == nullptr) [[unlikely]]
    return find_context();
  return *c;
}

/// FARSIDE_PRETEND_NODES.
inline rank_t pretend_nodes(rank_t nprocs) {
  constexpr const char* name = "FARSIDE_PRETEND_NODES";
  if (!FARSIDE_CHECKED && setting(name))
    raise(name,
          " is set, but this program is no checked build, and would ignore it. Build it with ",
          "FARSIDE_CHECKED=1, or unset ", name, ".");
  return static_cast<rank_t>(integer_setting(name, 1, nprocs).value_or(1));
}

template <class... Start>
context::context(thread_level level, const Start&... start)
    : link(start...), slot(&private_slot), threads(level), mutex(level == thread_level::multiple) {
  rank_t nprocs = link.nprocs();
  std::vector<rank_t> ranks(nprocs);
  for (rank_t i = 0; i < nprocs; ++i) ranks[i] = i;
  world = std::make_shared<team_members>(
      std::move(ranks), std::vector<std::size_t>(nprocs, world_block(nprocs)), link.rank());
  std::size_t first = (world_block(nprocs) + world->layout.bytes() + 63) & ~std::size_t{63};
  std::size_t size = link.segment_size() & ~std::size_t{63};
  std::size_t least = first + 65536;
  if (size < least)
    raise("a segment of ", link.segment_size(), " bytes is too small: ", nprocs,
          " ranks need at least ", least, " bytes each (FARSIDE_SEGMENT=", (least >> 20) + 1,
          "M).");
  if (size > max_segment)
    raise("a segment of ", size, " bytes is too large: far pointers address ", max_segment,
          " bytes a rank.");
  pretended_nodes = pretend_nodes(nprocs);
  use_slot(private_slot);
  oversubscribed = nprocs > std::thread::hardware_concurrency();
  far_heap = remote_heap(first, size);
  heap = local_heap(far_heap.split().begin(), far_heap.split().begin());
  note_heap(link, far_heap.split().begin(), far_heap.split().end());
}

inline message_service* context::start_service() {
  std::lock_guard lock(mutex);
  if (messages.load(std::memory_order_relaxed) == nullptr && !ended) {
    messages_owner = make_message_service.load(std::memory_order_acquire)(*this);
    messages.store(messages_owner.get(), std::memory_order_release);
  }
  return messages.load(std::memory_order_relaxed);
}

/// As long as it lives, waits of this rank run no handlers and no continuations. An operation that
/// holds something that others wait for needs that: a handler or a continuation, above it on the
/// same stack, could wait for that too, and for ever. What the operation itself waits for must come
/// without this rank.
class undisturbed {
 public:
  explicit undisturbed(context& c) : c_(c) {
    c_.undisturbed_depth.fetch_add(1, std::memory_order_relaxed);
  }
  ~undisturbed() { c_.undisturbed_depth.fetch_sub(1, std::memory_order_relaxed); }
  undisturbed(const undisturbed&) = delete;

 private:
  context& c_;
};

inline bool context::progress() {
  link.progress();
  if (undisturbed_depth.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return false;
  message_service* post = service();
  bool served = post != nullptr && post->serve();
  if (served) count_activity();
  struct taken {
    context& c;
    std::vector<std::shared_ptr<pending>> all{};
    ~taken() {
      std::lock_guard lock(c.mutex);
      if (FARSIDE_MUTANT(progress_forgets_new_work)) c.in_flight.clear();
      c.in_flight.insert(c.in_flight.end(), all.begin(), all.end());
      --c.polling;
    }
  };
  {
    std::lock_guard lock(mutex);
    if (in_flight.empty()) return served;
    ++polling;
  }
  taken now{*this};
  {
    std::lock_guard lock(mutex);
    now.all.swap(in_flight);
  }
  if (std::erase_if(now.all, [](auto& p) { return p->poll(); }) != 0)  // may add to in_flight
    count_activity();
  return served;
}

/// Whether the calling thread is in the handler of a message.
inline bool is_in_handler(context& c) {
  message_service* post = c.messages.load(std::memory_order_acquire);
  return post != nullptr && post->inside_handler();
}

/// Checked builds: a handler of a message may not wait.
inline void check_may_wait(context& c) {
  if constexpr (FARSIDE_CHECKED) {
    if (!is_in_handler(c)) return;
    job::waiting what = c.slot->waits.load(std::memory_order_relaxed).what;
    raise("rank ", c.link.rank(), ": the handler of a message waits for ",
          what == job::waiting::nothing ? "other ranks" : job::name_of(what),
          ". It runs inside a call of the library, while others may wait for this rank: let it "
          "send (far::rpc_ff, or far::rpc(...).then(...)), or return a far::future, and wait "
          "outside of handlers.");
  }
}

inline bool context::wait_round() {
  check_may_wait(*this);
  bool served = progress();
  quiet_wait_round();
  return served;
}

inline bool context::wait_round(unsigned& rounds) {
  constexpr unsigned eager = 50;
  if (oversubscribed || rounds >= eager) return wait_round();
  check_may_wait(*this);
  ++rounds;
  return progress();
}

/// The end of a path, as much of it as has room.
inline void copy_path(char* to, std::size_t room, const char* path) {
  std::size_t n = std::strlen(path);
  if (n >= room) {
    path += n - room + 1;
    if (const char* next = std::strchr(path, '/')) path = next + 1;
  }
  std::strncpy(to, path, room - 1);
  to[room - 1] = '\0';
}

inline void context::tell_names() {
  std::lock_guard lock(mutex);
  job::slot& s = *slot;
  for (std::size_t i = 0; i < job::kept_calls; ++i) {
    job::called& entry = s.calls[i];
    if (entry.number.load(std::memory_order_relaxed) != 0 && entry.file[0] == '\0' &&
        call_files[i] != nullptr)
      copy_path(entry.file, sizeof entry.file, call_files[i]);
  }
  if (call_name != nullptr) {
    s.call.number.store(0, std::memory_order_relaxed);
    std::strncpy(s.call.name, call_name, sizeof s.call.name - 1);
    copy_path(s.call.file, sizeof s.call.file, call_file);
    s.call.line = call_line;
    s.call.number.store(s.collectives.load(std::memory_order_relaxed), std::memory_order_release);
  }
  if (const char* subject = wait_subject.load(std::memory_order_relaxed)) {
    std::strncpy(s.subject, subject, sizeof s.subject - 1);
    s.subject_ready.store(1, std::memory_order_release);
  }
  wait_told.store(true, std::memory_order_relaxed);
}

inline void context::quiet_wait_round() {
  // Loops of containers that end soon do not say what they wait for: this round does.
  if (launched() && wait_now.load(std::memory_order_relaxed).what == job::waiting::nothing)
    slot->waits.store({job::waiting::others, job::no_rank}, std::memory_order_relaxed);
  link.pause();
  slot->rounds.store(slot->rounds.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (launched()) {
    // Its own operations go on while it waits, be they as long as they like.
    if (threads == thread_level::single && !in_flight.empty()) count_activity();
    // What was done in this round may have said that it waits for something else.
    slot->waits.store(wait_now.load(std::memory_order_relaxed), std::memory_order_relaxed);
    constexpr std::uint64_t long_ns = 5'000'000;
    if (!wait_told.load(std::memory_order_relaxed) &&
        job::monotonic_ns() - slot->waits_since.load(std::memory_order_relaxed) > long_ns)
      tell_names();
  }
  if (auto lost = link.lost_rank(); lost >= 0) [[unlikely]] {
    is_secondary_failure();
    const char* kind = lost < link.nprocs() ? "rank " : "progress rank ";
    raise<rank_failure>("rank ", link.rank(), " waits for ",
                        name_of(slot->waits.load(std::memory_order_relaxed).what), ", but ", kind,
                        lost, " has died.");
  }
}

/// Checked builds can pretend that ranks are on several nodes: then ptr::local() gives nullptr for
/// memory of the others, as it does on a cluster. Nothing else changes.
template <class T>
void* address_of(ptr<T> p) {
  context& c = here();
  // One past the end is an address, as of any array.
  if (p.rank() >= c.link.nprocs() || p.offset() > c.link.segment_size()) return nullptr;
  if constexpr (FARSIDE_CHECKED) {
    auto node = [&](rank_t rank) {
      return std::uint64_t{rank} * c.pretended_nodes / c.link.nprocs();
    };
    if (node(p.rank()) != node(c.link.rank())) return nullptr;
  }
  return c.link.address(p.rank(), p.offset());
}

template <class T>
void check_arithmetic(ptr<T> from, ptr<T> to) {
  if (from.rank() != to.rank() || from.raw() >> 63 != to.raw() >> 63) [[unlikely]]
    raise("far::ptr arithmetic on ", from, " left the segment of rank ", from.rank(),
          ". A far::ptr moves within one rank's memory; name another rank's by far::ptr(rank, "
          "offset).");
}

}  // namespace far::inline FARSIDE_BACKEND::detail
