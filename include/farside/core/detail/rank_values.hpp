// The values of all far::rank_local objects on one rank, found by the number of the object.
//
// Finding a value is two loads. Making one is rare: a lock, so that several threads of a rank agree
// on one value. The table is replaced when it is too small; older ones stay, as other threads may
// be reading them, and a value is in all tables that were made after it.
#pragma once

#include <farside/base/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Numbers that far::rank_local objects of this process have, from 1 on.
inline constinit std::atomic<std::uint32_t> rank_locals{0};

class rank_values {
 public:
  rank_values() = default;
  rank_values(const rank_values&) = delete;

  /// The value of that number, or null. Acquire: a thread that finds a value sees what its
  /// constructor wrote.
  void* find(std::uint32_t number) const {
    const table* t = now_.load(std::memory_order_acquire);
    if (t == nullptr || number >= t->size) return nullptr;
    return t->values[number].load(std::memory_order_acquire);
  }

  /// Makes the value by `make()`, unless another thread was first.
  template <class T, class Make>
  T& made(std::uint32_t number, Make make) {
    std::lock_guard lock(mutex_);
    if (void* there = find(number)) return *static_cast<T*>(there);
    if (number >= states_.size()) states_.resize(number + 1);
    if (states_[number] == state::being_made)
      raise(
          "the constructor of a far::rank_local's value uses that same far::rank_local. It is not "
          "there before its constructor has returned: pass what is needed as an argument.");
    if (states_[number] == state::ended)
      raise(
          "a far::rank_local was used after its value was destroyed at the end of this rank's run. "
          "Values end in the reverse order of their first uses: use this one before the value "
          "whose "
          "destructor needs it, for example in the constructor of that one.");
    T* value = nullptr;
    states_[number] = state::being_made;
    try {
      value = make();
      made_.push_back({number, value, [](void* of) { delete static_cast<T*>(of); }});
    } catch (...) {
      states_[number] = state::none;
      delete value;
      throw;
    }
    states_[number] = state::made;
    room_for(number).values[number].store(value, std::memory_order_release);
    return *value;
  }

  /// Destroys all values, the last made first. A destructor may make further ones.
  void end() {
    std::lock_guard lock(mutex_);
    while (!made_.empty()) {
      entry last = made_.back();
      made_.pop_back();
      states_[last.number] = state::ended;
      now_.load(std::memory_order_relaxed)->values[last.number].store(nullptr);
      last.destroy(last.value);
    }
  }

 private:
  enum class state : std::uint8_t { none, being_made, made, ended };
  struct entry {
    std::uint32_t number;
    void* value;
    void (*destroy)(void*);
  };
  struct table {
    explicit table(std::size_t n) : size(n), values(std::make_unique<std::atomic<void*>[]>(n)) {}
    std::size_t size;
    std::unique_ptr<std::atomic<void*>[]> values;
  };

  table& room_for(std::uint32_t number) {
    if (tables_.empty() || number >= tables_.back()->size) {
      auto larger = std::make_unique<table>(2 * (std::size_t{number} + 8));
      for (const entry& e : made_)
        if (e.number != number) larger->values[e.number].store(e.value, std::memory_order_relaxed);
      tables_.push_back(std::move(larger));
      now_.store(tables_.back().get(), std::memory_order_release);
    }
    return *tables_.back();
  }

  std::atomic<table*> now_{nullptr};
  std::recursive_mutex mutex_;  ///< of all below; a constructor may use other rank_locals
  std::vector<std::unique_ptr<table>> tables_;
  std::vector<state> states_;
  std::vector<entry> made_;  ///< in the order in which constructors have returned
};

}  // namespace far::inline FARSIDE_BACKEND::detail
