// The definition of linearizability, tried out on every order: right by inspection, and slow.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "history.hpp"

namespace linearizability {

template <class Spec>
class brute_force {
 public:
  brute_force(const Spec& spec, const std::vector<event<Spec>>& history)
      : spec_(spec), history_(history), used_(history.size(), false) {}

  /// Is there an order of all operations that returned, and of some of the others?
  bool linearizable() {
    if (complete()) return true;
    for (std::size_t i = 0; i < history_.size(); ++i)
      if (!used_[i] && may_come_next(i) && goes_on_with(i)) return true;
    return false;
  }

 private:
  bool complete() const {
    for (std::size_t i = 0; i < history_.size(); ++i)
      if (!used_[i] && !history_[i].pending()) return false;
    return true;
  }
  bool may_come_next(std::size_t i) const {
    for (std::size_t j = 0; j < history_.size(); ++j)
      if (!used_[j] && j != i && precedes(history_[j], history_[i])) return false;
    return true;
  }
  bool goes_on_with(std::size_t i) {
    const event<Spec>& e = history_[i];
    auto before = states_;
    auto& state = states_.try_emplace(key_of(e.call), spec_.initial()).first->second;
    auto answer = spec_.apply(state, e.call);
    used_[i] = true;
    bool good = answer && (!e.answered || *answer == e.answer) && linearizable();
    used_[i] = false;
    states_ = std::move(before);
    return good;
  }
  std::uint64_t key_of(const typename Spec::call& call) const {
    if constexpr (partitioned<Spec>) return spec_.partition(call);
    return 0;
  }

  const Spec& spec_;
  const std::vector<event<Spec>>& history_;
  std::vector<bool> used_;
  std::map<std::uint64_t, typename Spec::state> states_;
};

template <class Spec>
bool linearizable_by_brute_force(const Spec& spec, const std::vector<event<Spec>>& history) {
  return brute_force<Spec>(spec, history).linearizable();
}

}  // namespace linearizability
