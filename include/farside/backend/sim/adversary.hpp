// The adversary: takes every choice of a run, from a seed or, when all runs are explored, one after
// another. A choice depends on the seed and the step alone, so that switching the adversary off for
// some steps leaves its choices in the others as they were.
#pragma once

#include <farside/backend/sim/settings.hpp>
#include <farside/base/mixing.hpp>

#include <algorithm>
#include <cstdint>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// A chance of `num` in 256.
using chance = unsigned;

/// What the adversary likes for a while.
struct mood {
  chance switches = 256;  ///< that another rank goes on at a step
  chance delivers = 256;  ///< that something in flight lands at a step
  bool starves = false;   ///< one rank runs only when no other can
  std::uint64_t starved = 0;
};

class adversary {
 public:
  adversary() = default;
  explicit adversary(const settings& with) : settings_(with) {}

  /// Called once a step.
  void begin_step(std::uint64_t step) {
    step_ = step;
    draws_ = 0;
    active_ = step >= settings_.active_begin && step < settings_.active_end;
    if (step >= mood_ends_) change_mood();
  }

  bool active() const { return active_; }
  bool at_least(level l) const { return active_ && settings_.hardness >= l; }
  const mood& now() const { return mood_; }

  /// From 0 to n - 1.
  std::uint64_t below(std::uint64_t n) { return n <= 1 ? 0 : draw() % n; }
  bool happens(chance c) { return draw() % 256 < c; }

  /// Into how many pieces an operation on `words` words falls.
  std::size_t pieces(std::size_t words) {
    constexpr std::size_t most[] = {1, 3, 4, 8};
    if (!active_ || words < 2) return 1;
    return 1 + below(std::min(words, most[static_cast<std::size_t>(settings_.hardness)]));
  }

 private:
  std::uint64_t draw() {
    constexpr std::uint64_t step_factor = 0xd134'2543'de82'ef95;
    return scramble(settings_.seed * mix_offset + scramble(step_ * step_factor + ++draws_));
  }

  void change_mood() {
    auto any = [&](std::initializer_list<chance> of) { return of.begin()[below(of.size())]; };
    mood_ends_ = step_ + 32 + below(1024);
    mood_.starved = draw();
    switch (settings_.hardness) {
      case level::mild:
        mood_.switches = any({128, 256});
        mood_.delivers = any({128, 192});
        return;
      case level::normal:
        mood_.switches = any({32, 128, 256});
        mood_.delivers = any({16, 64, 192});
        mood_.starves = happens(32);
        return;
      case level::harsh:
        mood_.switches = any({8, 64, 256});
        mood_.delivers = any({4, 16, 64});
        mood_.starves = happens(64);
        return;
      case level::cruel:
        mood_.switches = any({2, 16, 128, 256});
        mood_.delivers = any({0, 1, 16, 128});
        mood_.starves = happens(128);
        return;
    }
  }

  settings settings_;
  mood mood_;
  std::uint64_t step_ = 0, draws_ = 0, mood_ends_ = 0;
  bool active_ = true;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
