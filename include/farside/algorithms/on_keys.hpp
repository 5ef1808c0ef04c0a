// far::on_keys: a function that runs when its inputs are there, where the first of them lies. With it
// a program runs on its data dependencies alone: nobody polls, and no barrier stands between steps.
//
//   far::store<int, matrix_block> blocks(1000);
//   far::on_keys(blocks, {a, b}, [](auto& store, const matrix_block& x, const matrix_block& y, int to) {
//     store.post(to, multiply(x, y));           // and who waits for `to` goes on
//   }, c);
//   ...
//   blocks.fence();                             // collective: all that could run has run
#pragma once

#include <farside/containers/store.hpp>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

namespace detail {

/// What is sent to the owner of the first key.
template <class Store, class F, std::size_t N, class... Args>
struct keyed_call {
  using K = typename Store::key_type;
  using V = typename Store::mapped_type;

  auto operator()(Store& of, const std::vector<K>& keys, const Args&... args) const {
    auto& m = of.implementation();
    counted_end until_asked{m.shared->counts};
    std::vector<future<V>> inputs;
    for (const K& key : keys) inputs.push_back(of.when(key));
    return when_all(std::move(inputs)).then([&m, args...](std::vector<V> values) {
      using handle = std::remove_cvref_t<decltype(handle_access::handle(std::declval<Store&>()))>;
      Store here = handle_access::make<Store>(handle::borrowed(m));
      return run(here, values, std::make_index_sequence<N>(), args...);
    });
  }

 private:
  struct counted_end {
    message_counts& counts;
    ~counted_end() { counts.count_handled(); }
  };
  template <std::size_t... I>
  static decltype(auto) run(Store& here, const std::vector<V>& values, std::index_sequence<I...>,
                            const Args&... args) {
    return F()(here, values[I]..., args...);
  }
};

}  // namespace detail

/// Calls `f(store, value of keys[0], value of keys[1], ..., args...)` at the owner of keys[0], when
/// all of them have been put, by whomever; a future of what it returns, or throws. `f` has no
/// captures: what else it needs are `args`, which are copied, as those of far::rpc. It runs in a
/// continuation of store::when, on the owner's program or, with attention::thread, on its thread: it
/// may use the store, and post, but wait for no other rank's program. store::fence waits until it
/// has run, with all it has posted, if its keys are there, and not if they are not. One-sided; a
/// message, and what `when` costs for each key: nothing more for keys[0].
template <class K, class V, class Placement, std::size_t N, class F, class... Args>
auto on_keys(store<K, V, Placement>& of, const std::type_identity_t<K> (&keys)[N], F,
             const Args&... args) {
  static_assert(
      std::is_empty_v<F> && std::is_default_constructible_v<F>,
      "far::on_keys: the function has captures, which would mean nothing on another rank. "
      "Give what it needs as arguments after it.");
  auto& counts = of.implementation().shared->counts;
  counts.count_sent();
  try {
    return rpc(of.owner(keys[0]), detail::keyed_call<store<K, V, Placement>, F, N, Args...>(), of,
               std::vector<K>(keys, keys + N), args...);
  } catch (...) {  // nothing was sent
    counts.count_handled();
    throw;
  }
}

}  // namespace far::inline FARSIDE_BACKEND
