// What the checker must know about an object: how it behaves when operations come one at a time.
//
//   struct flag {                                  // an example: a flag that is raised once
//     struct call { bool raise; };                 // what a client asks, with its arguments
//     using answer = bool;                         // what it is told: was the flag up before?
//     using state = bool;
//     state initial() const { return false; }
//     std::optional<answer> apply(state& up, const call& c) const {
//       return std::exchange(up, up || c.raise);
//     }
//     bool reads_only(const call& c, const answer& up) const { return !c.raise || up; }
//     std::size_t hash(const state& up) const { return up; }
//     std::string text(const call& c) const { return c.raise ? "raise()" : "look()"; }
//     std::string text(const call&, const answer& up) const { return up ? "up" : "down"; }
//     std::string text_of_state(const state& up) const { return up ? "up" : "down"; }
//   };
//
// apply        runs the call on the state and says what it answers; nothing where the call has to
//              wait (a pop of an empty queue): the state must be as it was then. Deterministic.
// reads_only   true only if a call that gives this answer never changes the state, whatever the
//              state is. It may always be false: it makes the search faster, not different.
// hash         equal states have equal hashes.
//
// Optional:
//
// partition    std::uint64_t partition(const call&): calls of different partitions do not see each
//              other (other keys of a map), so each partition is checked by itself.
// weight       std::size_t weight(const state&): words of memory that a state takes, for states
//              that grow; they count against the bound on the work.
// decide       std::optional<finding> decide(std::span<const event<S>>): the verdict on a
//              partition, sorted by invocation, where it takes no search; otherwise nothing.
// foresee      foresight<S> foresee(std::span<const event<S>>): what helps the search of a
// partition
//              that was not decided (see history.hpp).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace linearizability {

template <class S>
concept specification =
    std::equality_comparable<typename S::answer> && std::equality_comparable<typename S::state> &&
    std::copyable<typename S::call> && std::copyable<typename S::state> &&
    requires(const S& spec, typename S::state& state, const typename S::state& seen,
             const typename S::call& call, const typename S::answer& answer) {
      { spec.initial() } -> std::same_as<typename S::state>;
      { spec.apply(state, call) } -> std::same_as<std::optional<typename S::answer>>;
      { spec.reads_only(call, answer) } -> std::same_as<bool>;
      { spec.hash(seen) } -> std::convertible_to<std::size_t>;
      { spec.text(call) } -> std::same_as<std::string>;
      { spec.text(call, answer) } -> std::same_as<std::string>;
      { spec.text_of_state(seen) } -> std::same_as<std::string>;
    };

template <class S>
concept partitioned = specification<S> && requires(const S& spec, const typename S::call& call) {
  { spec.partition(call) } -> std::same_as<std::uint64_t>;
};

template <class S>
concept weighed = specification<S> && requires(const S& spec, const typename S::state& state) {
  { spec.weight(state) } -> std::same_as<std::size_t>;
};

/// What the objects here are asked: a key (or the number of the counter, of the queue), a value.
template <class Operation>
struct basic_call {
  Operation operation;
  std::uint64_t key;
  std::uint64_t argument;
};

/// What the objects here answer: yes or no, and a value where there is one (else 0).
struct basic_answer {
  bool yes = true;
  std::uint64_t value = 0;

  basic_answer() = default;
  basic_answer(std::same_as<bool> auto yes) : yes(yes) {}
  basic_answer(std::uint64_t value) : value(value) {}
  basic_answer(bool yes, std::uint64_t value) : yes(yes), value(value) {}
  basic_answer(const std::optional<std::uint64_t>& found)
      : yes(found.has_value()), value(found.value_or(0)) {}

  bool operator==(const basic_answer&) const = default;
};

inline std::string yes_or_no(bool yes) { return yes ? "true" : "false"; }

}  // namespace linearizability
