// far::rank_local<T>: a variable of static storage of which each rank has a value of its own,
// whether ranks are processes, threads of one process (`farside run --threads`) or simulated.
//
//   static far::rank_local<std::map<std::string, int>> stock;
//
//   far::rpc(next, [](std::string what) { return (*stock)[what]; }, what);   // that rank's own map
//   stock->clear();                                                          // this rank's own map
//
// A plain static is shared by all ranks of a process: handlers of messages that keep data in one
// work by luck where ranks are processes, and nowhere else. `thread_local` is no remedy, as
// handlers may run on another thread of their rank, and simulated ranks take turns on one thread.
#pragma once

#include <farside/core/context.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

/// Declare it at namespace scope, as a static member, or as a static in a function. Constant
/// initialised: it may be used from anywhere, in any order of translation units. It uses a little
/// memory of each rank for ever, so that it is nothing for automatic variables.
///
/// A value is made when its rank first uses it, and destroyed when the rank's runtime ends, after
/// all messages of all ranks have been handled and while far memory is still there; the last made
/// goes first. A runtime that is made later in the same process begins with new values. All threads
/// of a rank share one value, which they protect themselves. The constructor of T may use other
/// rank_locals, but must not communicate: it may run inside a handler.
template <class T>
class rank_local {
 public:
  using value_type = T;

  /// Values begin as T(). Local; no communication.
  constexpr rank_local()
    requires std::default_initializable<T>
      : make_([] { return new T(); }) {}

  /// Values begin as what `initial` returns, a function or a lambda without captures: each rank
  /// calls it when it first uses its value. Local; no communication.
  ///
  ///   static far::rank_local<std::vector<int>> seen(
  ///       [] { return std::vector<int>(far::nprocs()); });
  template <class F>
    requires std::is_empty_v<F> && std::default_initializable<F> &&
             std::same_as<std::invoke_result_t<F&>, T>
  constexpr explicit rank_local(F) : make_([] { return new T(F()()); }) {}

  rank_local(const rank_local&) = delete;
  rank_local& operator=(const rank_local&) = delete;

  /// This rank's value. Local; no communication. Three loads, once it has been made; throws where
  /// there is no runtime. The reference is good until the runtime of this rank ends.
  T& operator*() const {
    detail::rank_values& all = detail::here().values;
    void* value = all.find(number_.load(std::memory_order_relaxed));
    if (value == nullptr) [[unlikely]]
      return make(all);
    return *static_cast<T*>(value);
  }
  /// A member of this rank's value, as operator* finds it. Local; no communication.
  T* operator->() const { return &**this; }

 private:
  [[gnu::cold, gnu::noinline]] T& make(detail::rank_values& all) const {
    std::uint32_t number = number_.load(std::memory_order_relaxed);
    if (number == 0) {  // ranks that are threads may race for it: the first one numbers it
      std::uint32_t mine = detail::rank_locals.fetch_add(1, std::memory_order_relaxed) + 1;
      if (number_.compare_exchange_strong(number, mine, std::memory_order_relaxed)) number = mine;
    }
    return all.template made<T>(number, make_);
  }

  T* (*make_)();
  mutable std::atomic<std::uint32_t> number_{0};  ///< 0: not used yet
};

}  // namespace far::inline FARSIDE_BACKEND
