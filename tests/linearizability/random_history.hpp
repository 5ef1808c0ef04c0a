// Histories of objects that really are linearizable: each operation begins, takes effect and ends
// at three random moments.
#pragma once

#include <cstdint>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

#include "history.hpp"

namespace linearizability {

struct random_options {
  std::uint32_t clients = 4;
  std::uint32_t operations = 100;
  double lost = 0;           ///< how many operations never return
  double silent = 0;         ///< how many of those that return do not say what they answered
  std::uint32_t rushes = 1;  ///< greater: a client does so many steps in a row, so less overlaps
};

template <class Spec, class MakeCall>
class random_history {
 public:
  random_history(const Spec& spec, random_options how, std::mt19937_64& random, MakeCall make_call)
      : spec_(spec), how_(how), random_(random), make_call_(make_call), clients_(how.clients) {}

  std::vector<event<Spec>> make() {
    // Clients that wait for each other, all popping from an empty queue, go on for ever.
    for (std::uint64_t turns = 0; ended_ < how_.operations && turns < limit(); ++turns) {
      auto client = static_cast<std::uint32_t>(random_() % clients_.size());
      for (std::uint32_t i = 0; i < how_.rushes; ++i) step(client);
    }
    return std::move(history_);
  }

 private:
  enum class phase { idle, begun, effective };
  struct client {
    phase at = phase::idle;
    std::size_t operation = 0;
  };

  std::uint64_t limit() const { return std::uint64_t(100) * (how_.operations + how_.clients); }
  bool happens(double share) { return std::uniform_real_distribution<>()(random_) < share; }

  void step(std::uint32_t number) {
    client& c = clients_[number];
    if (c.at == phase::idle)
      begin(c, number);
    else if (happens(how_.lost / 2))
      finish(c);  // it had two chances to be lost
    else if (c.at == phase::begun)
      take_effect(c);
    else
      end(c);
  }

  void begin(client& c, std::uint32_t number) {
    if (history_.size() == how_.operations) return;
    c.operation = history_.size();
    c.at = phase::begun;
    event<Spec> e;
    e.call = make_call_(random_);
    e.client = number;
    e.invocation = ++now_;
    history_.push_back(e);
  }

  void take_effect(client& c) {
    event<Spec>& e = history_[c.operation];
    auto answer = spec_.apply(state_of(e.call), e.call);
    if (!answer) return;
    e.answer = *answer;
    c.at = phase::effective;
  }

  void end(client& c) {
    event<Spec>& e = history_[c.operation];
    e.response = ++now_;
    e.answered = !happens(how_.silent);
    finish(c);
  }
  void finish(client& c) {
    c.at = phase::idle;
    ++ended_;
  }

  typename Spec::state& state_of(const typename Spec::call& call) {
    std::uint64_t key = 0;
    if constexpr (partitioned<Spec>) key = spec_.partition(call);
    return states_.try_emplace(key, spec_.initial()).first->second;
  }

  const Spec& spec_;
  random_options how_;
  std::mt19937_64& random_;
  MakeCall make_call_;
  std::vector<client> clients_;
  std::unordered_map<std::uint64_t, typename Spec::state> states_;
  std::vector<event<Spec>> history_;
  std::uint64_t now_ = 0;
  std::size_t ended_ = 0;
};

/// `make_call(random)` says what a client does next.
template <class Spec, class MakeCall>
std::vector<event<Spec>> make_history(const Spec& spec, random_options how, std::mt19937_64& random,
                                      MakeCall make_call) {
  return random_history<Spec, MakeCall>(spec, how, random, make_call).make();
}

}  // namespace linearizability
