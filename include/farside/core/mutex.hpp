// far::mutex, far::mutex_set: mutual exclusion between ranks, one-sided.
//
//   far::mutex door;                       // collective; lies on rank 0
//   { std::lock_guard inside(door); ... }  // any rank, any time
//
//   far::mutex_set rows(1000);             // collective; mutex i lies on rank i % size
//   far::mutex_ref row = rows[17];
//   std::lock_guard inside(row);
//
// What a rank put, accumulated or stored to its own segment while it held a mutex is complete, and
// the next rank that holds the mutex sees it: unlock flushes.
//
// A queue of ranks (after Mellor-Crummey and Scott). The tail, on the host, names the last rank of
// the queue, 0 if there is none. Each rank has, in its own memory, two words for each mutex: `next`
// names the rank that comes after it, `grants` counts how often it was handed the mutex (a signal
// word: a rank that waits polls or sleeps on its own memory, whatever the transport does best).
//
//   free:     tail = 0
//   held:     tail = A            A holds it
//   queued:   tail = C            A holds it;  A.next = B, B.next = C;  B and C wait for a grant
//
//   lock      before = swap(tail, me)
//             before = 0:    held by me                            [free -> held]
//             else:          before.next = me; wait for a grant    [queue grows at its end]
//   unlock    flush
//             my next is 0:  compare_swap(tail, me, 0) = me?       [held -> free]
//                            else a rank has swapped the tail and
//                            not yet linked: wait for my next
//             grant to next; my next = 0                           [held -> held by next]
//   try_lock  compare_swap(tail, 0, me) = 0
//
// Invariant: the ranks that have swapped the tail and not yet unlocked form one chain by `next`
// (with gaps where a rank has swapped but not yet linked, which only that rank can close), its last
// is the tail, its first holds the mutex. A rank's `next` is written by its one successor, once,
// while the rank is in the chain, and cleared by itself; so it is 0 whenever the rank enters.
//
// Exclusion: the swaps of the tail have one order, so each rank has one predecessor, and enters
// when that one has granted, or when the tail was 0: the chain was empty.
// Fairness: ranks enter in the order of their swaps. Threads of one rank have no order.
// Memory order: A's puts are complete, for everybody, when its flush has returned. Then either A's
// signal is awaited by B (release, acquire), or A's compare-and-swap wrote the 0 that B's swap
// read: as in message passing by atomics (docs/memory_model.md), B's gets come after and see them.
//
// Cost, if nobody else wants it: lock 1 atomic; unlock 1 flush + 1 atomic. If it is held: lock 2
// atomics and the wait; unlock 1 flush + 1 atomic, the hand-over, and 1 more if it comes just
// between those of its successor. Own words are not counted: they cost nobody else anything.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/memory.hpp>
#include <farside/core/rma.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// The mutexes of a set, as one rank has them.
class mutex_state : public shared_state {
 public:
  mutex_state(const char* kind, std::size_t n, std::optional<rank_t> host,
              const container_options& with);

  std::size_t size() const { return size_; }
  rank_t host_of(std::size_t i) const {
    return host_ ? *host_ : static_cast<rank_t>(i % members.size());
  }

  void lock(std::size_t i);
  bool try_lock(std::size_t i);
  void unlock(std::size_t i);
  std::optional<rank_t> last_in_line(std::size_t i) const {
    std::uint64_t last = atomic_load(tail(i));
    return last == 0 ? std::optional<rank_t>() : static_cast<rank_t>(last - 1);
  }

  void release() override { dealloc(blocks_[members.rank()]); }

 private:
  /// Which thread of this rank has a mutex or waits for it, and how many grants it has had.
  struct turn {
    std::atomic<const void*> owner{nullptr};
    std::uint64_t grants = 0;
  };
  static const void* this_thread() {
    static thread_local char mark;
    return &mark;
  }

  // A member's block: | tails of those it hosts, 64 bytes each | next, grants of mutex 0 | ... |
  static constexpr std::size_t line = 8;  // words
  std::size_t hosted_by(rank_t member) const {
    if (host_) return member == *host_ ? size_ : 0;
    return (size_ + members.size() - 1) / members.size();
  }
  ptr<std::uint64_t> tail(std::size_t i) const {
    std::size_t place = host_ ? i : i / members.size();
    return blocks_[host_of(i)] + static_cast<std::ptrdiff_t>(place * line);
  }
  ptr<std::uint64_t> next(rank_t member, std::size_t i) const {
    return blocks_[member] + static_cast<std::ptrdiff_t>(hosted_by(member) * line + 2 * i);
  }
  ptr<std::uint64_t> grants(rank_t member, std::size_t i) const { return next(member, i) + 1; }

  /// This rank's own `next`: 0 as long as nobody has linked.
  std::uint64_t successor(std::size_t i) const {
    auto word = next(members.rank(), i);
    return where->link.template atomic_load<std::uint64_t>(word.rank(), word.offset());
  }
  std::uint64_t me() const { return std::uint64_t{members.rank()} + 1; }

  void await_grant(std::size_t i, rank_t before);
  void hand_over(std::size_t i, rank_t to);

  std::size_t size_;
  std::optional<rank_t> host_;  ///< of all; else they are spread over the members
  std::vector<ptr<std::uint64_t>> blocks_;
  std::unique_ptr<turn[]> turns_;
};

}  // namespace detail

/// One mutex of a set. A handle: copies name the same mutex. What std::lock_guard, std::unique_lock
/// and std::scoped_lock take. The set must live.
class mutex_ref {
 public:
  /// Waits until this rank holds the mutex. Ranks get it in the order in which they have asked.
  /// One-sided. The thread that holds it must not ask again. 1 atomic; 2 if it is held.
  void lock() { state_->lock(index_); }
  /// Takes it if nobody holds it. One-sided. 1 atomic.
  bool try_lock() { return state_->try_lock(index_); }
  /// Completes this rank's puts and hands the mutex to the next rank. One-sided; by the thread that
  /// holds it.
  /// 1 flush + 1 atomic.
  void unlock() { state_->unlock(index_); }
  /// The member that has asked last, perhaps the one that holds it; none if it was free. One-sided;
  /// may be out of date on return. 1 atomic.
  std::optional<rank_t> last_in_line() const { return state_->last_in_line(index_); }

 private:
  friend class mutex_set;
  mutex_ref(detail::mutex_state& state, std::size_t index) : state_(&state), index_(index) {}

  detail::mutex_state* state_;
  std::size_t index_;
};

/// Many mutexes: 64 bytes each on their hosts and 16 on every member.
class mutex_set {
 public:
  /// Collective. Mutex i lies on member i % size of the team, or all of them on `host`.
  explicit mutex_set(std::size_t n, std::optional<rank_t> host = {},
                     const container_options& with = {})
      : state_(new detail::mutex_state("mutex_set", n, host, with)) {}

  /// How many mutexes there are. Local; no communication.
  std::size_t size() const { return state_->size(); }
  /// One of them. Local; no communication.
  mutex_ref operator[](std::size_t i) {
    if (i >= size()) detail::raise("mutex ", i, " of a far::mutex_set of ", size(), " was used.");
    return mutex_ref(*state_, i);
  }
  /// The member on which it lies.
  rank_t host_of(std::size_t i) const { return state_->host_of(i); }
  const std::string& name() const { return state_->label; }

 private:
  friend detail::handle_access;
  explicit mutex_set(detail::container_handle<detail::mutex_state> of) : state_(std::move(of)) {}

  detail::container_handle<detail::mutex_state> state_;
};

/// One mutex.
class mutex {
 public:
  /// Collective. It lies on member `host` of the team.
  explicit mutex(rank_t host = 0, const container_options& with = {})
      : state_(new detail::mutex_state("mutex", 1, host, with)) {}

  /// As those of mutex_ref.
  void lock() { state_->lock(0); }
  bool try_lock() { return state_->try_lock(0); }
  void unlock() { state_->unlock(0); }
  std::optional<rank_t> last_in_line() const { return state_->last_in_line(0); }

  /// The member on which it lies. Local; no communication.
  rank_t host() const { return state_->host_of(0); }
  const std::string& name() const { return state_->label; }

 private:
  friend detail::handle_access;
  explicit mutex(detail::container_handle<detail::mutex_state> of) : state_(std::move(of)) {}

  detail::container_handle<detail::mutex_state> state_;
};

namespace detail {

inline mutex_state::mutex_state(const char* kind, std::size_t n, std::optional<rank_t> host,
                                const container_options& with)
    : shared_state(kind, with), size_(n), host_(host), turns_(std::make_unique<turn[]>(n)) {
  if (host_) require_root(members, kind, *host_);
  std::vector<std::uint64_t> zeros(hosted_by(members.rank()) * line + 2 * size_);
  blocks_ =
      alloc_together<std::uint64_t>(members, full_name(), std::max<std::size_t>(zeros.size(), 1));
  put(blocks_[members.rank()], zeros.data(), zeros.size());
}

inline void mutex_state::lock(std::size_t i) {
  turn& mine = turns_[i];
  const void* owner = nullptr;
  while (!mine.owner.compare_exchange_weak(owner, this_thread(), std::memory_order_acquire)) {
    if (owner == this_thread())
      raise("rank ", where->link.rank(), ": lock of mutex ", i, " of '", label,
            "', which this thread holds already: it would wait for itself. Unlock it first.");
    where->wait_round();
    owner = nullptr;
  }
  std::uint64_t before = swap(tail(i), me());
  if (before == 0) return;
  auto predecessor = static_cast<rank_t>(before - 1);
  atomic_store(next(predecessor, i), me());
  await_grant(i, predecessor);
}

inline bool mutex_state::try_lock(std::size_t i) {
  turn& mine = turns_[i];
  const void* owner = nullptr;
  if (!mine.owner.compare_exchange_strong(owner, this_thread(), std::memory_order_acquire))
    return false;
  if (FARSIDE_MUTANT(mutex_tried_in_two_steps)) {
    if (atomic_load(tail(i)) == 0) return atomic_store(tail(i), me()), true;
  } else if (compare_swap(tail(i), 0, me()) == 0) {
    return true;
  }
  mine.owner.store(nullptr, std::memory_order_release);
  return false;
}

inline void mutex_state::unlock(std::size_t i) {
  turn& mine = turns_[i];
  if (mine.owner.load(std::memory_order_relaxed) != this_thread())
    raise("rank ", where->link.rank(), ": unlock of mutex ", i, " of '", label,
          "', which this thread does not hold. Only the rank and thread that locked a far::mutex "
          "unlocks it.");
  if (!FARSIDE_MUTANT(mutex_unlocked_unflushed)) flush();
  std::uint64_t after = successor(i);
  bool last = false;
  if (after == 0) {
    if (FARSIDE_MUTANT(mutex_tail_overwritten))
      last = (atomic_store(tail(i), 0), true);
    else
      last = compare_swap(tail(i), me(), 0) == me();
    if (!last && FARSIDE_MUTANT(mutex_unlinked_forgotten)) last = true;
    if (!last) {
      wait_marker note(*where, job::waiting::unlock, job::no_rank, label.c_str());
      while ((after = successor(i)) == 0) where->wait_round();
    }
  }
  if (!last) hand_over(i, static_cast<rank_t>(after - 1));
  mine.owner.store(nullptr, std::memory_order_release);
}

/// A signal: it wakes a rank that sleeps.
inline void mutex_state::hand_over(std::size_t i, rank_t to) {
  auto word = grants(to, i), link = next(members.rank(), i);
  where->link.signal(word.rank(), word.offset());
  note(*where, operation::atomic, word.rank(), sizeof(std::uint64_t), false);
  if (!FARSIDE_MUTANT(mutex_link_not_cleared))
    where->link.template fetch_op<atomic_op::swap>(link.rank(), link.offset(), std::uint64_t{0});
}

inline void mutex_state::await_grant(std::size_t i, rank_t before) {
  std::size_t offset = grants(members.rank(), i).offset();
  std::uint64_t due = ++turns_[i].grants;
  if (FARSIDE_MUTANT(mutex_grants_not_counted)) due = 1;
  context& c = *where;
  count_wait(c);
  rank_t on = members.world_rank(before);
  if (c.messages.load(std::memory_order_acquire) != nullptr && c.attends == attention::poll)
    serve_until(c, offset, due, job::waiting::lock, on, label.c_str());  // in await it may sleep
  await_word(c, offset, due, job::waiting::lock, on, label.c_str());
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
