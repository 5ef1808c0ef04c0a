// What a rank tells the job's board while it waits, so that the launcher can say of a job that
// hangs which rank waits for what.
#pragma once

#include <farside/core/context.hpp>

#include <bit>

namespace far::inline FARSIDE_BACKEND::detail {

/// Tells the board, as long as it lives, what this rank waits for. `subject` is the name of that,
/// if it has one, and must live as long.
class wait_marker {
 public:
  wait_marker(context& c, job::waiting what, rank_t on = job::no_rank,
              const char* subject = nullptr)
      : c_(c),
        outer_(c.wait_now.load(std::memory_order_relaxed)),
        outer_subject_(c.wait_subject.load(std::memory_order_relaxed)),
        outer_since_(c.slot->waits_since.load(std::memory_order_relaxed)) {
    tell({what, on}, subject);
    c.slot->waits_since.store(job::monotonic_ns(), std::memory_order_relaxed);
    c.slot->waits.store({what, on}, std::memory_order_release);
  }
  ~wait_marker() {
    c_.slot->waits.store(outer_, std::memory_order_release);
    c_.slot->waits_since.store(outer_since_, std::memory_order_relaxed);
    tell(outer_, outer_subject_);
  }
  wait_marker(const wait_marker&) = delete;

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

/// As long as it lives, the board says of waits for futures that this rank waits for the answer of
/// the rank that owns a part of `container`.
class owner_wait_marker {
 public:
  owner_wait_marker(context& c, const char* container)
      : c_(c), outer_(c.asked.exchange(container, std::memory_order_relaxed)) {}
  ~owner_wait_marker() { c_.asked.store(outer_, std::memory_order_relaxed); }
  owner_wait_marker(const owner_wait_marker&) = delete;

 private:
  context& c_;
  const char* outer_;
};

/// Tells the board, as long as it lives, that this rank may be waiting in a call of its transport.
/// It makes one store when it begins and one when it ends: the fences of a transport wait for
/// stores, and an atomic between two ranks of one node takes no more than 50 ns.
class call_marker {
 public:
  [[gnu::always_inline]] call_marker(std::atomic<job::wait>* on, operation kind, rank_t target)
      : on_(kind != operation::put ? on : nullptr) {
    if (kind == operation::put) return;
    constexpr job::waiting names[operation_kinds] = {
        job::waiting::get,     job::waiting::put,     job::waiting::atomic, job::waiting::flush,
        job::waiting::nothing, job::waiting::nothing, job::waiting::nothing};
    auto name = static_cast<std::uint64_t>(names[static_cast<std::size_t>(kind)]);
    say(std::uint64_t{target} << 32 | name);
  }
  [[gnu::always_inline]] ~call_marker() {
    if (on_ != nullptr) say(0);  // waits for nothing, so the rank does not matter
  }
  call_marker(const call_marker&) = delete;

 private:
  /// A wait as one word, of which compilers make one instruction or two.
  [[gnu::always_inline]] void say(std::uint64_t word) {
    static_assert(std::bit_cast<job::wait>(std::uint64_t{1} << 32).on == 1);
    on_->store(std::bit_cast<job::wait>(word), std::memory_order_relaxed);
  }

  std::atomic<job::wait>* on_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
