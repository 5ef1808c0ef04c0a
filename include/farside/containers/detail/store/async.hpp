// Operations of stores that are not waited for: their first round trips are in flight when they
// return. What those leave open is done in full when they have come.
#pragma once

#include <farside/containers/detail/map/hash_map_impl.hpp>
#include <farside/containers/detail/store/store_core.hpp>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// The result of `f`, in a future that is ready.
template <class F>
auto at_once(F f) {
  using R = decltype(f());
  try {
    return future<R>::ready(f());
  } catch (...) {
    return future<R>::failed(std::current_exception());
  }
}

template <class Core>
using found_version = std::optional<versioned<typename Core::value_type>>;

/// A get of the object at `at`. What it brings counts if it is whole, and if no barrier has ended
/// meanwhile after which the memory may be another object's.
template <class Core>
future<found_version<Core>> begin_reading(Core& m, const typename Core::K& key, const place& at) {
  auto image = std::make_shared<object_image>();
  image->words = std::make_unique_for_overwrite<word[]>(at.words);
  auto begin_get = [&] {
    stale_reads until_begun(m.c.link);
    return async_get(at.at, image->words.get(), at.words);
  };
  return begin_get().then(
      [&m, key, at, image, epoch = m.tables.epoch, until_done = m.choice.under_way()] {
        using Value = typename Core::value_type;
        found_version<Core> found;
        if (epoch == m.tables.epoch && judge_fetched<Value>(*image, at) == seen::whole &&
            !image->erasing)
          found.emplace(
              versioned<Value>{Core::layout::value_in(image->words.get()), image->top.version()});
        else
          m.template find_value<if_blocked::wait>(key, found);
        return found;
      });
}

/// A future of the value of a key.
template <class Core>
future<found_version<Core>> begin_finding(Core& m, const typename Core::K& key) {
  using found = found_version<Core>;
  if constexpr (Core::in_bucket) {
    return map::begin(m, map::find_there(), key, concurrency::everything,
                      [](typename Core::outcome done) -> found {
                        if (!done.value || done.value->is_parked()) return std::nullopt;
                        return Core::value_in(*done.value);
                      });
  } else {
    const rank_t member = m.place_of(key).member;
    if (m.sends_to_owner(container_operation::find, member, concurrency::everything))
      return m.choice.send_later(member, question_of_object(m, find_object(), key, nothing()),
                                 [&m, key, member](const std::vector<std::byte>& bytes) mutable {
                                   if (auto answer = answer_in(m, member, key, bytes))
                                     return std::move(answer->value);
                                   found here;
                                   m.template find_value<if_blocked::wait>(key, here);
                                   return here;
                                 });
    if (m.c.link.coherent())
      return at_once([&] {
        found here;
        m.template find_value<if_blocked::wait>(key, here);
        return here;
      });
    if (auto at = m.known_place(key)) return begin_reading(m, key, *at);
    return map::begin(m, map::find_there(), key, concurrency::everything,
                      [](typename Core::outcome done) -> std::optional<place> {
                        if (!done.value || done.value->is_parked()) return std::nullopt;
                        return Core::place_in(*done.value);
                      })
        .then([&m, key, until_done = m.choice.under_way()](std::optional<place> at) {
          if (!at) return future<found>::ready(std::nullopt);
          m.remember(key, *at);
          return begin_reading(m, key, *at);
        });
  }
}

/// A future of what `finish(outcome)` makes of a change of the slot of a key.
template <class Core, class Op, class Item, class Finish>
auto begin_change(Core& m, Op op, const Item& item, Finish finish) {
  return map::begin(
      m, std::move(op), item, concurrency::everything, [&m, finish](typename Core::outcome done) {
        m.changes.fetch_add(done.count != counted::nothing, std::memory_order_relaxed);
        return finish(done);
      });
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
