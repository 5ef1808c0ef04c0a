// far::distributed<T>: an object of each member of a team, made together, which messages find.
//
//   using list = far::distributed<std::vector<int>>;
//   list mine(std::vector<int>{1, 2});                                     // collective
//   mine->push_back(3);                                                    // this rank's own
//   far::rpc(2, [](list& there, int x) { there->push_back(x); }, mine, 4); // rank 2's
//   auto copy = mine.fetch(2).get();                                       // a copy of rank 2's
//
// Use far::rank_local for what exists once in a program, and far::distributed for what a function
// or a class makes as often as it likes. T lies in ordinary memory and is of any type. Only its own
// rank touches it.
#pragma once

#include <farside/core/detail/container.hpp>
#include <farside/core/rpc.hpp>

#include <string>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// A handle that owns: its end is collective over the team, like its construction. Handlers run on
/// this rank at the same time as its own code only with attention::thread.
template <class T>
class distributed {
  struct state : detail::shared_state {
    state(T&& mine, const container_options& with)
        : shared_state("distributed", with), value(std::move(mine)) {}
    T value;
  };

 public:
  using value_type = T;

  /// Collective over the team of `with` (the world, if there is none). This member's object is
  /// `mine`. On return all members have theirs, and messages may name it. 1 barrier.
  explicit distributed(T mine = T(), const container_options& with = {})
      : state_(new state(std::move(mine), with)) {}

  /// This rank's own object. Local; no communication.
  T& operator*() const { return state_->value; }
  /// A member of this rank's own object. Local; no communication.
  T* operator->() const { return &state_->value; }

  /// A copy of the object of the member at position `member` of the team, which must serve. T is
  /// serializable. One-sided; the future is ready when the copy is here. 1 rpc.
  future<T> fetch(rank_t member) const {
    return rpc(
        state_->members.world_rank(member), [](distributed& there) { return *there; }, *this);
  }

  /// The members that have a part of it. Local; no communication.
  const team& members() const { return state_->members; }
  /// Its name in errors. Local; no communication.
  const std::string& name() const { return state_->label; }

 private:
  friend detail::handle_access;
  explicit distributed(detail::container_handle<state> of) : state_(std::move(of)) {}

  detail::container_handle<state> state_;
};

}  // namespace far::inline FARSIDE_BACKEND
