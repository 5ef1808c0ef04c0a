// sim: all ranks in one process, as user-level threads of which one runs at a time, against an
// adversary that does all that the memory model allows (docs/testing.md). The same seed gives the
// same run. Programs use far::run, as main cannot be run twice.
#pragma once

#include <farside/backend/shared/add_in_place.hpp>
#include <farside/backend/shared/started_alone.hpp>
#include <farside/backend/sim/clock.hpp>
#include <farside/backend/sim/operations.hpp>
#include <farside/backend/sim/request.hpp>
#include <farside/base/job_board.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

inline const char* name_of(atomic_op op) {
  constexpr const char* names[] = {
      "adds", "ands", "ors", "xors", "takes the minimum", "takes the maximum", "swaps"};
  return names[static_cast<std::size_t>(op)];
}

/// Segments are virtual until they are touched, but there may be thousands.
inline std::size_t choose_segment(const start_options& options, rank_t nprocs) {
  if (options.segment != 0) return options.segment;
  std::size_t otherwise = std::size_t{nprocs <= 64 ? 256u : 16u} << 20;
  return size_setting("FARSIDE_SEGMENT").value_or(otherwise);
}

inline rank_t chosen_nprocs() {
  if (!setting(job::nprocs_variable))
    refuse_separate_jobs("sim", job::find_foreign_start(),
                         "simulated ranks are all in one process, which 'farside run' or 'farside "
                         "sim' starts",
                         ", or simulate many runs with 'farside sim'");
  return static_cast<rank_t>(integer_setting(job::nprocs_variable, 1, 1 << 19).value_or(1));
}

class backend {
 public:
  using request = sim_backend::request;
  static constexpr const char* name = "sim";

  explicit backend(const start_options& options) : rank_(options.thread_rank) {
    if (options.shared_job != nullptr) {
      world_ = static_cast<world*>(options.shared_job);
      return;
    }
    if (chosen_nprocs() > 1)
      raise(
          "this program makes its far::runtime in main, which the sim back end cannot run once a "
          "rank. Write main as 'return far::run(argc, argv, [] { ... });'.");
    own_ = std::make_unique<world>(1, choose_segment(options, 1));
    world_ = own_.get();
  }

  static constexpr bool coherent() { return false; }
  static constexpr bool async_progress() { return true; }
  static constexpr bool racy_get() { return true; }

  rank_t rank() const { return rank_; }
  rank_t nprocs() const { return world_->nprocs(); }
  std::size_t segment_size() const { return world_->segment_size(); }
  void* address(rank_t rank, std::size_t offset) const {
    return rank == rank_ ? world_->memory(rank, offset) : nullptr;
  }

  void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    world_->put(rank_, rank, offset, from, bytes);
  }
  void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    world_->get(rank_, rank, offset, to, bytes);
  }
  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    return {*world_, rank_, world_->async_put(rank_, rank, offset, from, bytes)};
  }
  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    return {*world_, rank_, world_->async_get(rank_, rank, offset, to, bytes)};
  }

  template <component C>
  static constexpr bool accumulates() {
    return true;
  }
  /// The source is copied: it may be reused. Now and then a part of it is left to be tried again,
  /// as if another rank were adding to the same place.
  template <component C>
  accumulated accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n, rank_t) {
    std::size_t now = world_->how_many(n);
    if (now != 0) async_accumulate(rank, offset, from, now).wait();
    return {now};
  }
  template <component C>
  request async_accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
    return {*world_, rank_,
            world_->async_accumulate(rank_, rank, offset, from, n * sizeof(C), &add<C>)};
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    T old;
    world_->atomic(rank_, rank, offset, sizeof(T), name_of(Op), true,
                   [&](void* word) { old = change<Op>(word, value); });
    return old;
  }
  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    T old;
    world_->atomic(rank_, rank, offset, sizeof(T), "compares and swaps", true,
                   [&](void* word) { old = exchange(word, expected, desired); });
    return old;
  }
  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    T old;
    world_->atomic(rank_, rank, offset, sizeof(T), "loads", false,
                   [&](void* word) { std::memcpy(&old, word, sizeof old); });
    return old;
  }
  template <atomic_op Op, atomic_word T>
  request async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
    return {*world_, rank_,
            world_->async_atomic(rank_, rank, offset, sizeof(T), &old,
                                 [value](void* word, void* result) {
                                   T before = change<Op>(word, value);
                                   std::memcpy(result, &before, sizeof before);
                                 })};
  }
  template <atomic_word T>
  request async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
    return {*world_, rank_,
            world_->async_atomic(rank_, rank, offset, sizeof(T), &old,
                                 [expected, desired](void* word, void* result) {
                                   T before = exchange(word, expected, desired);
                                   std::memcpy(result, &before, sizeof before);
                                 })};
  }

  void flush(rank_t rank) { world_->flush(rank_, rank); }
  void flush() { world_->flush(rank_, std::nullopt); }
  void signal(rank_t rank, std::size_t offset) { world_->signal(rank_, rank, offset); }
  bool await(std::size_t offset, std::uint64_t count) {
    return world_->await(rank_, offset, count);
  }

  void progress() {}
  void pause() { world_->pause(rank_); }
  std::int64_t lost_rank() { return world_->lost_rank(); }
  void finish() {}
  [[noreturn]] void abort(const char* why) { world_->fail_run(why); }

  void note_heap(std::size_t begin, std::size_t end) { world_->note_heap(begin, end); }
  void note_allocated(rank_t rank, std::size_t offset, std::size_t bytes) {
    world_->note_allocated(rank_, rank, offset, bytes);
  }
  std::string note_freed(rank_t rank, std::size_t offset) {
    return world_->note_freed(rank_, rank, offset);
  }
  void heap_access(bool begins) { world_->heap_access(rank_, begins); }

  // Beyond the contract: what the runtime tells the simulated machine, if it is one.
  world& machine() { return *world_; }

 private:
  /// One rank runs at a time: no atomics are needed.
  template <component C>
  static void add(void* at, const void* addends, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += sizeof(C)) {
      C sum, addend;
      std::memcpy(&sum, static_cast<char*>(at) + i, sizeof sum);
      std::memcpy(&addend, static_cast<const char*>(addends) + i, sizeof addend);
      sum += addend;
      std::memcpy(static_cast<char*>(at) + i, &sum, sizeof sum);
    }
  }

  template <atomic_op Op, class T>
  static T change(void* word, T value) {
    T old;
    std::memcpy(&old, word, sizeof old);
    T fresh = value;
    if constexpr (Op == atomic_op::add)
      fresh = static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                             static_cast<std::make_unsigned_t<T>>(value));
    if constexpr (Op == atomic_op::bit_and) fresh = old & value;
    if constexpr (Op == atomic_op::bit_or) fresh = old | value;
    if constexpr (Op == atomic_op::bit_xor) fresh = old ^ value;
    if constexpr (Op == atomic_op::min) fresh = std::min(old, value);
    if constexpr (Op == atomic_op::max) fresh = std::max(old, value);
    std::memcpy(word, &fresh, sizeof fresh);
    return old;
  }
  template <class T>
  static T exchange(void* word, T expected, T desired) {
    T old;
    std::memcpy(&old, word, sizeof old);
    if (old == expected) std::memcpy(word, &desired, sizeof desired);
    return old;
  }

  std::unique_ptr<world> own_;
  world* world_ = nullptr;
  rank_t rank_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend

namespace far::inline FARSIDE_BACKEND {

/// The part of a program whose schedules are all tried when they are explored (`farside sim
/// --exhaustive`), as long as it lives; nothing otherwise. All ranks make one, at the same place,
/// with nothing in flight. A loop that polls ends each round with a wait of the library; where two
/// rounds have seen the same memory, the rank goes on when something has changed it.
class explored {
 public:
  explored() : where_(*detail::sim_backend::running_world), me_(where_.running()) {
    where_.enter_explored(me_);
  }
  ~explored() { where_.leave_explored(me_); }
  explored(const explored&) = delete;

 private:
  detail::sim_backend::world& where_;
  rank_t me_;
};

}  // namespace far::inline FARSIDE_BACKEND
