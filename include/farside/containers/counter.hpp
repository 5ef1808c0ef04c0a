// far::counter: a number that everybody takes tickets from.
//
//   far::counter tickets;
//   for (std::uint64_t i; (i = tickets.next()) < jobs;) work_on(i);
//
// One 64-bit word on one rank, changed by atomics only: they have one order among all ranks, so
// tickets are unique, without gaps, and given in an order that agrees with real time
// (linearizable).
//
// Taking tickets and looking are one-sided.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/rma.hpp>

#include <cstdint>
#include <string>

namespace far::inline FARSIDE_BACKEND {

class counter {
 public:
  /// Collective. The word lies on member `host` of the team. Costs an allocation there, and a few
  /// collectives.
  explicit counter(std::uint64_t first = 0, rank_t host = 0, const container_options& with = {})
      : state_(new state(first, host, with)) {}

  /// The first of `n` tickets, which are the caller's alone. One-sided; complete on return;
  /// anything but reset may run at the same time. 1 atomic.
  std::uint64_t next(std::uint64_t n = 1) {
    if (FARSIDE_MUTANT(counter_read_then_swapped)) {
      auto old = atomic_load(state_->word);
      return swap(state_->word, old + n), old;
    }
    return fetch_add(state_->word, n);
  }

  /// Begins to take `n` tickets. 1 atomic, not waited for.
  future<std::uint64_t> async_next(std::uint64_t n = 1) { return async_fetch_add(state_->word, n); }

  /// The next ticket as it is now; it may be taken on return. One-sided. 1 get, of a word that
  /// atomics change: where gets have no `racy_get`, 1 atomic.
  std::uint64_t value() const {
    return detail::here().link.racy_get() ? get(state_->word) : atomic_load(state_->word);
  }

  /// Collective: begins again, at the value that all members give. 2 barriers.
  void reset(std::uint64_t first = 0) { state_->set(first); }

  /// The member on which it lies. Local; no communication.
  rank_t host() const { return state_->host; }
  /// Its name in errors. Local; no communication.
  const std::string& name() const { return state_->label; }

 private:
  friend detail::handle_access;
  struct state : detail::shared_state {
    state(std::uint64_t first, rank_t on, const container_options& with)
        : shared_state("counter", with), host(on) {
      detail::require_root(members, "counter", host);
      word = detail::alloc_together<std::uint64_t>(members, full_name(),
                                                   members.rank() == host ? 1 : 0)[host];
      set(first);
    }
    void release() override {
      if (members.rank() == host) dealloc(word);
    }
    void set(std::uint64_t first) {
      auto note = detail::calling<"reset of a counter">(*this);
      detail::barrier(members.members());
      if (members.rank() == host) atomic_store(word, first);
      detail::barrier(members.members());
    }

    ptr<std::uint64_t> word;
    rank_t host;
  };

  explicit counter(detail::container_handle<state> of) : state_(std::move(of)) {}

  detail::container_handle<state> state_;
};

}  // namespace far::inline FARSIDE_BACKEND
