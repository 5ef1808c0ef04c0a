// The context: all state of one rank. A thread finds its rank's context through one
// thread-local pointer, so that ranks can be threads (or fibres) of one process.
#pragma once

#include <farside/backend/backend.hpp>
#include <farside/core/environment.hpp>
#include <farside/core/error.hpp>
#include <farside/core/ptr.hpp>
#include <farside/core/statistics.hpp>
#include <farside/detail/board.hpp>
#include <farside/detail/leaks.hpp>
#include <farside/detail/local_heap.hpp>
#include <farside/detail/mutants.hpp>
#include <farside/detail/object_registry.hpp>
#include <farside/detail/rank_values.hpp>
#include <farside/detail/remote_heap.hpp>
#include <farside/detail/team_block.hpp>

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

/// What serves the messages of a rank (detail/messages/post_office.hpp).
struct message_service {
  virtual ~message_service() = default;
  /// Does what can be done now, and waits for no rank; whether that was anything.
  virtual bool serve() = 0;
  virtual bool inside_handler() const = 0;  ///< is the calling thread in a handler?
  virtual bool in_a_hurry() const = 0;      ///< in one that gives up instead of waiting?
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
  job::slot* slot;                            ///< this rank's slot on the board, or `private_slot`
  std::atomic<job::wait>* notices = nullptr;  ///< its `waits` if calls may wait for their targets,
                                              ///< or `unseen`; see notice
  std::atomic<job::wait> unseen{};
  thread_level threads;
  optional_mutex mutex;  ///< guards the heap, the pending list and the counters
  local_heap heap;
  allocation_sites sites;  ///< who has what of it; checked builds
  remote_heap far_heap;
  std::shared_ptr<team_members> world;
  std::vector<std::shared_ptr<pending>> in_flight;
  std::size_t polling = 0;                   ///< threads that have taken it all, and look at it
  std::vector<container_state*> containers;  ///< those that live; detail/container.hpp
  object_registry objects;                   ///< how messages find them
  std::uint32_t teams = 0;                   ///< made here so far, besides the world
  rank_values values;                        ///< of far::rank_local
  job::slot private_slot{};
  std::string stats_target;  ///< FARSIDE_STATS
  attention attends = attention::poll;
  std::unique_ptr<message_service> messages_owner;
  std::atomic<message_service*> messages{nullptr};  ///< null in programs that send none
  bool crowded = false;  ///< more ranks than cores: who waits yields at once
  bool ended = false;
  bool bereaved = false;                       ///< see mourns()
  std::atomic<unsigned> undisturbed_depth{0};  ///< see undisturbed

  // The collective that this rank is in (detail/calls.hpp).
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

  // What this rank waits for, as `waits` has said it: calls inside the wait say other things.
  std::atomic<job::wait> wait_now{};
  std::atomic<const char*> wait_subject{nullptr};
  std::atomic<const char*> asked{nullptr};  ///< see asks_owner
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
    notices = link.async_progress() ? &unseen : &slot->waits;
  }

  /// Whether a launcher reads this rank's slot: it prints what the rank says there.
  bool launched() const { return slot != &private_slot; }

  /// Whether this rank fails only because another one has died: then it is not the first cause.
  bool mourns() {
    if (!bereaved && link.lost_rank() >= 0) {
      bereaved = true;
      slot->bereaved.store(1);
    }
    return bereaved;
  }

  /// Whether a message was served.
  bool progress();

  /// Who serves messages, if this program sends any.
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
  /// The same where what is awaited comes soon: the first rounds do not yield, if ranks have cores
  /// of their own. `rounds` counts them, from 0.
  bool wait_round(unsigned& rounds);
  /// The same without the progress of what this rank has begun: runs no continuations.
  void quiet_wait_round();
};

inline constinit thread_local context* current = nullptr;

/// A back end whose operations need, in all jobs or some, no more than a small value, which each
/// thread then keeps at hand: put, get, atomics and flush go to it instead of the back end. It is
/// null in jobs that have none. One that `is_usual` needs no value at all: `usual` does what it
/// does, and is what operations try first. `far_view` is the same for
/// jobs in which operations may have to wait for others. A back end that has jobs with neither, and
/// cares for their speed, says so: then it is reached by `plain`.
template <class B>
concept has_view = requires(const B& link) {
  { link.quick_view() } -> std::same_as<typename B::view>;
  { link.quick_view().is_usual() } -> std::same_as<bool>;
  typename B::view::usual;
};
template <class B>
concept has_far_view = requires(B& link) {
  { link.quick_far_view() } -> std::same_as<typename B::far_view>;
};
template <class B>
concept has_plain_jobs = !has_view<B> || B::has_plain_jobs;

/// What has_view and has_far_view stand for, or nothing.
struct no_view {
  using usual = no_view;
  constexpr explicit operator bool() const { return false; }
  constexpr bool is_usual() const { return false; }
};
template <class B>
struct view_of : std::type_identity<no_view> {};
template <has_view B>
struct view_of<B> : std::type_identity<typename B::view> {};
template <class B>
struct far_view_of : std::type_identity<no_view> {};
template <has_far_view B>
struct far_view_of<B> : std::type_identity<typename B::far_view> {};

template <class B>
struct quick_access {
  template <class Context>
  void set(Context* c) {
    *this = {};
    if (c == nullptr) return;
    if constexpr (has_view<B>) view = c->link.quick_view();
    if constexpr (has_far_view<B>) far_view = c->link.quick_far_view();
    if (!view) plain = c;
    notices = c->notices;
  }
  typename view_of<B>::type view{};
  typename far_view_of<B>::type far_view{};
  std::atomic<job::wait>* notices = nullptr;
  context* plain = nullptr;
};

/// What far operations look at first: null while somebody counts (and without a runtime), so that
/// one that finds it has nothing else to ask. Null too where several threads share a rank, as each
/// of them may begin to count.
inline constinit thread_local quick_access<transport> quick{};

inline void set_current(context* c) {
  current = c;
  bool plain = c != nullptr && !c->counts && c->threads == thread_level::single;
  quick.set(plain ? c : nullptr);
}

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

/// Tells the board what this rank waits for, as long as it lives. `subject` is the name of it, if
/// it has one, and lives as long.
class waits {
 public:
  waits(context& c, job::waiting what, rank_t on = job::no_rank, const char* subject = nullptr)
      : c_(c),
        outer_(c.wait_now.load(std::memory_order_relaxed)),
        outer_subject_(c.wait_subject.load(std::memory_order_relaxed)),
        outer_since_(c.slot->waits_since.load(std::memory_order_relaxed)) {
    tell({what, on}, subject);
    c.slot->waits_since.store(job::monotonic_ns(), std::memory_order_relaxed);
    c.slot->waits.store({what, on}, std::memory_order_release);
  }
  ~waits() {
    c_.slot->waits.store(outer_, std::memory_order_release);
    c_.slot->waits_since.store(outer_since_, std::memory_order_relaxed);
    tell(outer_, outer_subject_);
  }
  waits(const waits&) = delete;

 private:
  void tell(job::wait what, const char* subject) {
    c_.wait_now.store(what, std::memory_order_relaxed);
    c_.wait_subject.store(subject, std::memory_order_relaxed);
    c_.slot->subject_ready.store(0, std::memory_order_relaxed);
    c_.wait_told.store(false, std::memory_order_relaxed);
  }

  context& c_;
  job::wait outer_;
  const char* outer_subject_;
  std::uint64_t outer_since_;
};

/// As long as it lives, waits for futures are waits for the answer of who owns a part of
/// `container`.
class asks_owner {
 public:
  asks_owner(context& c, const char* container)
      : c_(c), outer_(c.asked.exchange(container, std::memory_order_relaxed)) {}
  ~asks_owner() { c_.asked.store(outer_, std::memory_order_relaxed); }
  asks_owner(const asks_owner&) = delete;

 private:
  context& c_;
  const char* outer_;
};

/// Finds the context; counts and times one operation as long as it lives, if somebody counts.
class timed {
 public:
  [[gnu::noinline]] timed(operation kind, rank_t target, std::size_t bytes)
      : c_(here()),
        bytes_(bytes),
        begin_(c_.counts ? job::monotonic_ns() : 0),
        kind_(kind),
        target_(target) {}
  [[gnu::noinline]] ~timed() {
    if (!c_.counts) return;
    std::lock_guard lock(c_.mutex);
    if (c_.counts) c_.counts->add(kind_, target_, bytes_, job::monotonic_ns() - begin_);
  }
  timed(const timed&) = delete;
  context& where() const { return c_; }

 private:
  context& c_;
  std::size_t bytes_;
  std::uint64_t begin_;
  operation kind_;
  rank_t target_;
};

/// Counts a round trip that is waited for, if somebody counts.
inline void count_wait(context& c) {
  if (!c.counts) return;
  std::lock_guard lock(c.mutex);
  if (c.counts) ++c.counts->totals.waits;
}

/// Counts an operation that was made by other means than put, get and atomics: containers load and
/// store directly where memory is coherent, and say what that stood for.
inline void note(context& c, operation kind, rank_t target, std::size_t bytes, bool waited) {
  if (!c.counts) [[likely]]
    return;
  std::lock_guard lock(c.mutex);
  if (!c.counts) return;
  c.counts->add(kind, target, bytes, 0);
  c.counts->totals.waits += waited;
}

/// Tells the board, as long as it lives, that this rank may be waiting in a call of its transport.
/// One store each way: the fences of a transport wait for them, and an atomic between two ranks of
/// one node takes no more than 50 ns.
class notice {
 public:
  [[gnu::always_inline]] notice(std::atomic<job::wait>* on, operation kind, rank_t target)
      : on_(kind != operation::put ? on : nullptr) {
    if (kind == operation::put) return;
    constexpr job::waiting names[operation_kinds] = {
        job::waiting::get,     job::waiting::put,     job::waiting::atomic, job::waiting::flush,
        job::waiting::nothing, job::waiting::nothing, job::waiting::nothing};
    auto name = static_cast<std::uint64_t>(names[static_cast<std::size_t>(kind)]);
    say(std::uint64_t{target} << 32 | name);
  }
  [[gnu::always_inline]] ~notice() {
    if (on_ != nullptr) say(0);  // waits for nothing: no matter whom
  }
  notice(const notice&) = delete;

 private:
  /// A wait as one word, of which compilers make one instruction or two.
  [[gnu::always_inline]] void say(std::uint64_t word) {
    static_assert(std::bit_cast<job::wait>(std::uint64_t{1} << 32).on == 1);
    on_->store(std::bit_cast<job::wait>(word), std::memory_order_relaxed);
  }

  std::atomic<job::wait>* on_;
};

/// Whether a back end is known, at compile time, to wait for nobody in its calls.
template <class B>
inline constexpr bool never_waits = false;
template <class B>
  requires(B::async_progress())
inline constexpr bool never_waits<B> = true;

/// Checked builds: as long as it lives, this thread may not communicate, as what is done may be
/// done again. Says where that is.
class silence {
 public:
  explicit silence([[maybe_unused]] const char* inside) {
    if constexpr (FARSIDE_CHECKED) outer_ = std::exchange(where_, inside);
  }
  ~silence() {
    if constexpr (FARSIDE_CHECKED) where_ = outer_;
  }
  silence(const silence&) = delete;

  static void check() {
    if constexpr (FARSIDE_CHECKED)
      if (where_ != nullptr) [[unlikely]]
        raise("the function given to ", where_,
              " communicates. It may be called several times, and others wait for it meanwhile: "
              "read what it needs before, and let it compute only.");
  }

 private:
  inline static constinit thread_local const char* where_ = nullptr;
  const char* outer_ = nullptr;
};

/// Everything that is counted goes through here: counts if somebody counts, works. Forced inline,
/// so that what `work` captures stays in registers.
template <class Work>
[[gnu::always_inline]] inline auto perform(operation kind, rank_t target, std::size_t bytes,
                                           Work&& work) {
  silence::check();
  timed until_return(kind, target, bytes);
  context& c = until_return.where();
  if constexpr (!never_waits<transport>) {
    if (c.notices != &c.unseen) {  // which several threads of a rank would all write
      notice while_waiting(c.notices, kind, target);
      return work(c);
    }
  }
  return work(c);
}

/// What access() does where segments are at no usual place, somebody counts or checks, several
/// threads share a rank, or there is no runtime.
template <class Work>
[[gnu::noinline]] auto access_with_care(operation kind, rank_t target, std::size_t bytes,
                                        Work work) {
  if constexpr (has_view<transport> && !FARSIDE_CHECKED)
    if (auto view = quick.view) return work(view);
  return perform(kind, target, bytes, [&](context& c) {
    if (kind != operation::put) count_wait(c);
    return work(c.link);
  });
}

/// The same for put, get, atomics and flush, which `work(link)` does: the fast path. Checks ask for
/// more than a view knows. `work` is small, captures by value what is one and is forced inline, so
/// that all of it stays in registers.
template <class Work>
[[gnu::always_inline]] inline auto access(operation kind, rank_t target, std::size_t bytes,
                                          Work work) {
  if constexpr (has_view<transport> && !FARSIDE_CHECKED) {
    if (quick.view.is_usual()) [[likely]] {
      typename view_of<transport>::type::usual view;
      return work(view);
    }
  }
  if constexpr (has_far_view<transport> && !FARSIDE_CHECKED) {
    if (quick.far_view) [[likely]] {
      notice while_waiting(quick.notices, kind, target);
      return work(quick.far_view);
    }
  }
  if constexpr (has_plain_jobs<transport> && !FARSIDE_CHECKED) {
    if (context* c = quick.plain) [[likely]] {
      notice while_waiting(quick.notices, kind, target);
      return work(c->link);
    }
  }
  return access_with_care(kind, target, bytes, work);
}

/// Where the head of the list of blocks that other ranks have freed lies in each segment.
inline constexpr std::size_t freed_list = null_guard + 64;
/// Where the words of messages lie (detail/messages/wire.hpp): 128 bytes, and 16 for each rank.
inline constexpr std::size_t message_words = null_guard + 256;
/// Where the world team's block begins; before it the library keeps words of its own.
inline constexpr std::size_t world_block(rank_t nprocs) {
  std::size_t words = message_words + 128 + 16 * std::size_t{nprocs};
  return std::max<std::size_t>(null_guard + 4096, (words + 63) & ~std::size_t{63});
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

// A segment:
//   | null_guard | the library's words | world team's block | the heaps' words | alloc ->  ...  <-
//   alloc_on |
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
  crowded = nprocs > std::thread::hardware_concurrency();
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

/// As long as it lives, waits of this rank run no handlers and no continuations. Whoever holds
/// something that others wait for needs that: a handler or a continuation, above it on the same
/// stack, could wait for it too, and for ever. What it waits for itself must come without this
/// rank.
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
  if (crowded || rounds >= eager) return wait_round();
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
    mourns();
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
  if constexpr (FARSIDE_CHECKED) {
    auto node = [&](rank_t rank) {
      return std::uint64_t{rank} * c.pretended_nodes / c.link.nprocs();
    };
    if (node(p.rank()) != node(c.link.rank())) return nullptr;
  }
  return c.link.address(p.rank(), p.offset());
}

/// What is mapped so that the CPU notices accesses that lead out of a segment, or to null.
template <class Link>
concept guarded_by_pages = requires { requires Link::guarded_by_pages; };

template <class Link, class T>
[[gnu::cold, gnu::noinline]] void refuse_access(const Link& link, const char* what, ptr<T> p,
                                                std::size_t n, const char* why) {
  context& c = here();
  static_cast<void>(link);
  raise("rank ", c.link.rank(), ": ", what, " of ", n, " x ", sizeof(T), " bytes at ", p, " of ",
        c.link.nprocs(), " ranks with segments of ", c.link.segment_size(), " bytes: ", why,
        ". Use pointers from far::alloc, far::make or far::alloc_on, within what was allocated.");
}

/// The pointer must name memory that exists. Checked builds look closely. Others compare, unless
/// the CPU does (bad_address.hpp).
template <class Link, class T>
[[gnu::always_inline]] inline void check_access([[maybe_unused]] const Link& link,
                                                [[maybe_unused]] const char* what,
                                                [[maybe_unused]] ptr<T> p,
                                                [[maybe_unused]] std::size_t n) {
  if constexpr (!FARSIDE_CHECKED && !guarded_by_pages<Link>) {
    const std::size_t end = link.segment_size();
    if (p.offset() < null_guard || n > (end - p.offset()) / sizeof(T) || p.offset() > end ||
        p.rank() >= link.nprocs()) [[unlikely]] {
      if (n == 0) return;
      refuse_access(link, what, p, n,
                    !p                          ? "the pointer is null"
                    : p.rank() >= link.nprocs() ? "there is no such rank"
                    : p.offset() < null_guard   ? "nothing lies there: the pointer was never set"
                                              : "it reaches beyond the end of that rank's segment");
    }
  }
  if constexpr (FARSIDE_CHECKED) {
    const char* why = nullptr;
    if (!p)
      why = "the pointer is null";
    else if (p.raw() >> 63)
      why = "the pointer names device memory, which this back end does not have";
    else if (p.rank() >= link.nprocs())
      why = "there is no such rank";
    else if (n > link.segment_size() / sizeof(T) ||
             p.offset() + n * sizeof(T) > link.segment_size())
      why = "it reaches beyond the end of that rank's segment";
    else if (p.offset() < null_guard)
      why = "nothing lies there: the pointer was never set";
    else if (p.offset() % alignof(T) != 0)
      why = "the pointer is not aligned for its type";
    if (why != nullptr) [[unlikely]]
      refuse_access(link, what, p, n, why);
  }
}

/// A far::ptr<T> is aligned for T: of what is computed so a compiler knows that, too.
template <class T>
constexpr std::size_t aligned_offset(ptr<T> p) {
  return p.offset() & ~(alignof(T) - 1);
}

template <class T>
void check_arithmetic(ptr<T> from, ptr<T> to) {
  if (from.rank() != to.rank() || from.raw() >> 63 != to.raw() >> 63) [[unlikely]]
    raise("far::ptr arithmetic on ", from, " left the segment of rank ", from.rank(),
          ". A far::ptr moves within one rank's memory; name another rank's by far::ptr(rank, "
          "offset).");
}

}  // namespace far::inline FARSIDE_BACKEND::detail
