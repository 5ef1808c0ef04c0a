// What clients did to an object, as they saw it: each client logs its own operations, the logs are
// put together afterwards.
//
//   recorder<map> log(rank, clock);
//   bool inserted = log.run(map::insert(7, 1), [&] { return table.insert(7, 1); });
//   ...
//   auto found = check<map>(merged(far::gather(log.events(), 0)));
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "specification.hpp"

namespace linearizability {

/// The response of an operation that did not return.
inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// One operation of one client. Trivially copyable where the call and the answer are.
///
/// It took effect at one moment between its invocation and its response. One that is pending (its
/// client died or gave up) took effect at some moment after its invocation, or not at all.
template <class Spec>
struct event {
  typename Spec::call call{};
  typename Spec::answer answer{};
  std::uint64_t invocation = 0;
  std::uint64_t response = never;
  std::uint32_t client = 0;
  bool answered = false;  ///< false: it may have answered anything

  bool pending() const { return response == never; }
};

/// Did `a` end before `b` began? If neither precedes the other, they overlap: any order is good.
template <class Spec>
bool precedes(const event<Spec>& a, const event<Spec>& b) {
  return a.response < b.invocation;
}

/// The log of one client; one thread at a time may use it. A client may have several operations
/// under way: begin() and end() need not be nested.
///
/// The clock is called before an operation begins and after it has ended. All clients of a history
/// share it: whenever one call of it ends before another begins, on whatever rank, the stamp of the
/// first must not be greater. A counter that all increment will do, and so will the monotonic clock
/// of one machine, which comes less in the way of what is tested: a counter orders all who use it.
/// Equal stamps are taken for operations that overlap, which is always safe.
template <specification Spec>
class recorder {
 public:
  using call = typename Spec::call;
  using answer = typename Spec::answer;

  recorder(std::uint32_t client, std::function<std::uint64_t()> clock)
      : client_(client), clock_(std::move(clock)) {}

  /// Logs an operation that is about to begin. Until end() it is pending.
  std::size_t begin(const call& what) {
    event<Spec> e;
    e.call = what;
    e.client = client_;
    events_.push_back(e);
    events_.back().invocation = clock_();
    return events_.size() - 1;
  }

  /// The operation that begin() gave this number has returned, and said `said`.
  void end(std::size_t number, const answer& said) {
    end(number);
    events_[number].answer = said;
    events_[number].answered = true;
  }
  /// It has returned; what it answered is not known.
  void end(std::size_t number) { events_.at(number).response = clock_(); }

  /// The operation that was begun last has not happened, as it has thrown something that says so.
  void cancel_last() { events_.pop_back(); }

  /// begin(what), body(), end() with what body returned; with no answer if it returns nothing. An
  /// operation whose body throws stays pending: it may have taken effect.
  template <class Body>
  auto run(const call& what, Body&& body) {
    std::size_t number = begin(what);
    if constexpr (std::is_void_v<std::invoke_result_t<Body>>) {
      std::forward<Body>(body)();
      end(number);
    } else {
      auto said = std::forward<Body>(body)();
      end(number, answer(said));
      return said;
    }
  }

  const std::vector<event<Spec>>& events() const { return events_; }

 private:
  std::uint32_t client_;
  std::function<std::uint64_t()> clock_;
  std::vector<event<Spec>> events_;
};

/// All clients' logs as one history. A log that is missing makes the history wrong, not shorter:
/// others may have seen what its client did. So that of a client that dies must be kept elsewhere.
template <class Event>
std::vector<Event> merged(const std::vector<std::vector<Event>>& logs) {
  std::vector<Event> all;
  for (const auto& log : logs) all.insert(all.end(), log.begin(), log.end());
  return all;
}

/// What the whole of a history tells about any order that explains it.
template <class Spec>
struct foresight {
  /// The same events, with times between which each must have taken effect; or none.
  std::vector<event<Spec>> narrowed{};
  /// True only for a state that no such order goes through.
  std::function<bool(const typename Spec::state&)> hopeless{};
};

/// `client 2 [17, 20] insert(3, 4) -> true`
template <class Spec>
std::string text(const Spec& spec, const event<Spec>& e) {
  std::string ended = e.pending() ? "never" : std::to_string(e.response);
  std::string said = e.pending()  ? "did not return"
                     : e.answered ? spec.text(e.call, e.answer)
                                  : "returned";
  return "client " + std::to_string(e.client) + " [" + std::to_string(e.invocation) + ", " + ended +
         "] " + spec.text(e.call) + " -> " + said;
}

/// Throws for a history that cannot be one.
template <class Spec>
void require_sound(const Spec& spec, const std::vector<event<Spec>>& history) {
  for (const auto& e : history)
    if (e.response < e.invocation)
      throw std::invalid_argument("linearizability: '" + text(spec, e) +
                                  "' ended before it began: its clock ran backwards. All clients "
                                  "must take their stamps from one clock");
}

}  // namespace linearizability
