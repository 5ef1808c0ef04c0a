// far::future<T>: the result of something begun. Move-only. Ready at once where the transport
// completes at once (smp), without an allocation.
//
//   auto f = far::async_get(p);                      // begins
//   long x = f.get();                                // waits
//   far::async_get(p).then([](long x) { ... });      // goes on when ready, inside library calls
//   long y = co_await far::async_get(p);             // in a coroutine that returns far::future
//
// A wait makes progress for everything in flight. Continuations run on the thread that finds the
// future ready, inside some call of the library that waits or makes progress.
//
// All of it is local: waiting serves messages and makes progress, but begins no communication of
// its own.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/access.hpp>

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

template <class T = void>
class future;

namespace detail {

/// What a future holds: nothing at all for void.
template <class T>
using held = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
struct is_future : std::false_type {};
template <class T>
struct is_future<future<T>> : std::true_type {};

/// The state shared by a future that is not ready and what will make it ready.
template <class T>
struct future_state : pending {
  std::optional<held<T>> value;
  std::exception_ptr failure;
  std::mutex mutex;  ///< of `ready` together with `continuation`
  std::function<void()> continuation;
  transport::request request;  ///< what it waits for, if it is a far operation
  std::atomic<bool> has_request{false};
  std::atomic<bool> ready{false};
  std::atomic_flag busy = ATOMIC_FLAG_INIT;  ///< one thread at a time looks at the request

  bool poll() override {
    if (ready.load(std::memory_order_acquire)) return true;
    if (!has_request || busy.test_and_set(std::memory_order_acquire)) return false;
    bool complete = has_request &&  // another thread may just have been here
                    (FARSIDE_MUTANT(future_ready_at_once) || request.test());
    if (complete) has_request = false;
    busy.clear(std::memory_order_release);
    if (complete) finish();
    return complete;
  }

  bool is_under_way() const override { return has_request; }

  /// Called before the failure is thrown to the one who has the future: a dropped one tells nobody.
  virtual void told() {}

  void set(held<T> result) {
    value.emplace(std::move(result));
    finish();
  }
  void fail(std::exception_ptr why) {
    failure = std::move(why);
    finish();
  }

  void finish() {
    std::function<void()> next;
    {
      std::lock_guard lock(mutex);
      ready.store(true, std::memory_order_release);
      next.swap(continuation);
    }
    if (next) next();
  }

  /// Calls `next` once ready, perhaps now.
  void when_ready(std::function<void()> next) {
    {
      std::lock_guard lock(mutex);
      if (!ready.load(std::memory_order_acquire) || FARSIDE_MUTANT(continuation_set_too_late)) {
        continuation = std::move(next);
        return;
      }
    }
    next();
  }
};

template <class T, class Begin>
future<T> in_flight(context& c, Begin begin);
inline future<void> in_flight(context& c, transport::request request);

template <class T>
struct future_promise;

}  // namespace detail

template <class T>
class [[nodiscard]] future {
 public:
  using value_type = T;
  using promise_type = detail::future_promise<T>;

  future() = default;  ///< An empty future. Assign one to it before use.
  future(future&& other) noexcept
      : now_(std::exchange(other.now_, std::nullopt)), state_(std::move(other.state_)) {}
  future& operator=(future&& other) noexcept {
    now_ = std::exchange(other.now_, std::nullopt);
    state_ = std::move(other.state_);
    return *this;
  }

  /// A future that is ready already.
  template <class... Value>
  static future ready(Value&&... value) {
    future result;
    result.now_.emplace(std::forward<Value>(value)...);
    return result;
  }

  /// A future that has failed already.
  static future failed(std::exception_ptr why) {
    auto state = std::make_shared<detail::future_state<T>>();
    state->fail(std::move(why));
    return future(state);
  }

  /// For the library: the future of what something in flight will give.
  explicit future(std::shared_ptr<detail::future_state<T>> state) : state_(std::move(state)) {}

  /// Whether it has a result to give: it is not empty, moved from or got.
  bool valid() const { return now_.has_value() || state_ != nullptr; }

  /// Ready? Makes progress, does not wait.
  bool is_ready() {
    if (now_) return true;
    if (require().poll()) return true;
    detail::here().progress();
    return state_->poll();
  }

  /// Waits; makes progress for everything in flight meanwhile.
  void wait() {
    if (now_ || require().poll()) return;
    detail::context& c = detail::here();
    const char* asked = c.asked.load(std::memory_order_relaxed);
    detail::wait_marker note(c,
                             asked != nullptr           ? detail::job::waiting::answer
                             : detail::is_in_handler(c) ? detail::job::waiting::reply
                                                        : detail::job::waiting::future,
                             detail::job::no_rank, asked);
    detail::count_wait(c);
    for (unsigned rounds = 0; !state_->poll();) c.wait_round(rounds);
  }

  /// Waits and takes the value, once. Throws what the operation or a continuation threw.
  T get() {
    wait();
    future taken(std::move(*this));
    if (taken.state_ && taken.state_->failure) {
      taken.state_->told();
      std::rethrow_exception(taken.state_->failure);
    }
    if constexpr (!std::is_void_v<T>)
      return std::move(taken.now_ ? *taken.now_ : *taken.state_->value);
  }

  /// A future of `next(value)`, called when this one is ready (at once if it is). A future that
  /// `next` returns is waited for in turn. Consumes this future.
  template <class Next>
  auto then(Next next);

  /// Calls `next(this future)` when it is ready or has failed, perhaps now. Consumes this future.
  template <class Next>
  void finally(Next next) {
    if (now_) return next(std::move(*this));
    auto state = std::exchange(state_, nullptr);
    if (state == nullptr) require();
    state->when_ready([state, next = std::move(next)]() mutable { next(future(state)); });
  }

  // co_await
  bool await_ready() { return is_ready(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    state_->when_ready([waiting] { waiting.resume(); });
  }
  T await_resume() { return get(); }

 private:
  template <class>
  friend class future;

  detail::future_state<T>& require() {
    if (state_ == nullptr)
      detail::raise(
          "this far::future holds nothing: its value was taken already, it was moved from, or it "
          "was never given an operation.");
    return *state_;
  }

  std::optional<detail::held<T>> now_;
  std::shared_ptr<detail::future_state<T>> state_;
};

namespace detail {

/// Calls `f` with the value of a ready future (none for void).
template <class F, class T>
decltype(auto) apply_value(F& f, future<T>& ready) {
  if constexpr (std::is_void_v<T>) {
    ready.get();
    return f();
  } else {
    return f(ready.get());
  }
}

/// Gives `to` the value or the failure of a ready future.
template <class T>
void settle(future<T> from, future_state<T>& to) {
  try {
    if constexpr (std::is_void_v<T>)
      from.get(), to.set({});
    else
      to.set(from.get());
  } catch (...) {
    to.fail(std::current_exception());
  }
}

template <class R, class F, class T>
void run_continuation(F& f, future<T>& ready, const std::shared_ptr<future_state<R>>& result) {
  try {
    using Returned = decltype(apply_value(f, ready));
    if constexpr (is_future<Returned>::value) {
      apply_value(f, ready).finally(
          [result](future<R> inner) { settle(std::move(inner), *result); });
    } else if constexpr (std::is_void_v<Returned>) {
      apply_value(f, ready);
      result->set({});
    } else {
      result->set(apply_value(f, ready));
    }
  } catch (...) {
    result->fail(std::current_exception());
  }
}

template <class R>
struct unwrapped {
  using type = R;
};
template <class R>
struct unwrapped<future<R>> {
  using type = R;
};

}  // namespace detail

template <class T>
template <class Next>
auto future<T>::then(Next next) {
  using Returned = decltype(detail::apply_value(next, *this));
  using R = typename detail::unwrapped<Returned>::type;
  if (now_) {  // the common case on shared memory: nothing to keep
    future ready(std::move(*this));
    try {
      if constexpr (detail::is_future<Returned>::value)
        return detail::apply_value(next, ready);
      else if constexpr (std::is_void_v<R>)
        return detail::apply_value(next, ready), future<void>::ready();
      else
        return future<R>::ready(detail::apply_value(next, ready));
    } catch (...) {
      return future<R>::failed(std::current_exception());
    }
  }
  auto result = std::make_shared<detail::future_state<R>>();
  // Not a capture that makes it: nvcc 13 takes its name for that of the parameter.
  auto kept = std::make_shared<Next>(std::move(next));
  finally([result, kept](future arrived) { detail::run_continuation<R>(*kept, arrived, result); });
  return future<R>(result);
}

namespace detail {

/// A future whose value lands from the transport: `begin(slot)` starts it and gives the request.
template <class T, class Begin>
future<T> in_flight(context& c, Begin begin) {
  if (c.link.coherent()) {  // loads and stores, complete on return: no state needed
    T value;
    begin(value);
    return future<T>::ready(value);
  } else {
    auto state = std::make_shared<future_state<T>>();
    state->value.emplace();
    state->request = begin(*state->value);
    state->has_request = true;
    if (!state->poll()) {
      std::lock_guard lock(c.mutex);
      c.in_flight.push_back(state);
    }
    return future<T>(state);
  }
}

inline future<void> in_flight(context& c, transport::request request) {
  if (c.link.coherent()) {
    return future<void>::ready();
  } else {
    auto state = std::make_shared<future_state<void>>();
    state->value.emplace();
    state->request = std::move(request);
    state->has_request = true;
    if (!state->poll()) {
      std::lock_guard lock(c.mutex);
      c.in_flight.push_back(state);
    }
    return future<void>(state);
  }
}

/// What makes far::future the return type of a coroutine.
template <class T>
struct future_promise_base {
  std::shared_ptr<future_state<T>> state = std::make_shared<future_state<T>>();
  future<T> get_return_object() { return future<T>(state); }
  std::suspend_never initial_suspend() noexcept { return {}; }
  std::suspend_never final_suspend() noexcept { return {}; }
  void unhandled_exception() { state->fail(std::current_exception()); }
};

template <class T>
struct future_promise : future_promise_base<T> {
  template <class Value>
  void return_value(Value&& value) {
    this->state->set(T(std::forward<Value>(value)));
  }
};

template <>
struct future_promise<void> : future_promise_base<void> {
  void return_void() { state->set({}); }
};

}  // namespace detail

namespace detail {

/// Counts parts that arrive in any order. The first failure is the failure of the whole. It is told
/// when the last part has arrived: until then parts are in flight, and use memory that the caller
/// frees when it handles the failure.
template <class Values>
struct when_all_state {
  Values values;
  std::atomic<std::size_t> left;
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  ///< written by the part that set `failed`, before it arrives
  std::shared_ptr<future_state<Values>> result = std::make_shared<future_state<Values>>();

  explicit when_all_state(std::size_t parts) : left(parts) {}

  template <class T>
  void arrive(future<T> part, held<T>& to) {
    try {
      if constexpr (std::is_void_v<T>)
        part.get();
      else
        to = part.get();
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
    if (left.fetch_sub(1) != 1) return;
    if (failed)
      result->fail(failure);
    else
      result->set(std::move(values));
  }
};

template <class T>
auto when_all_of_one_type(std::vector<future<T>> parts) {
  using Values = std::vector<held<T>>;
  auto all = std::make_shared<when_all_state<Values>>(parts.size());
  all->values.resize(parts.size());
  auto result = all->result;
  if (parts.empty()) result->set({});
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i].finally([all, i](future<T> part) { all->arrive(std::move(part), all->values[i]); });
  if constexpr (std::is_void_v<T>)
    return future<Values>(result).then([](const Values&) {});
  else
    return future<Values>(result);
}

}  // namespace detail

/// A future of all the values, in order (std::monostate for void). Ready when the last one is.
template <class... T>
future<std::tuple<detail::held<T>...>> when_all(future<T>... parts) {
  using Values = std::tuple<detail::held<T>...>;
  auto all = std::make_shared<detail::when_all_state<Values>>(sizeof...(T));
  auto result = all->result;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (parts.finally(
         [all](future<T> part) { all->arrive(std::move(part), std::get<I>(all->values)); }),
     ...);
  }(std::index_sequence_for<T...>());
  if constexpr (sizeof...(T) == 0) result->set({});
  return future<Values>(result);
}

/// For any number of futures of one type; a future of nothing for void.
template <class T>
auto when_all(std::vector<future<T>> parts) {
  if constexpr (std::is_same_v<T, bool>) {
    // A std::vector<bool> has no elements that two threads could write at once.
    std::vector<future<char>> wide;
    for (auto& part : parts) wide.push_back(std::move(part).then([](bool b) { return char{b}; }));
    return detail::when_all_of_one_type(std::move(wide)).then([](const std::vector<char>& values) {
      return std::vector<bool>(values.begin(), values.end());
    });
  } else {
    return detail::when_all_of_one_type(std::move(parts));
  }
}

}  // namespace far::inline FARSIDE_BACKEND
