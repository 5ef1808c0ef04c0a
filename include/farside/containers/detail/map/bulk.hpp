// Operations on many keys, whose first steps are in flight together.
#pragma once

#include <farside/containers/detail/map/fast_path.hpp>

#include <algorithm>
#include <array>
#include <bitset>
#include <memory>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

inline constexpr std::size_t in_flight_together = 64;
inline constexpr std::size_t cache_bytes = std::size_t{1} << 19;  ///< of tables that caches hold

/// Calls `finish(i, location, window)` for keys 0 to n - 1, in order, after the first windows of
/// many of them have been fetched together: n gets and one wait for each 64. Where memory is
/// coherent there are no windows (null): the lines are on their way to the cache instead, to be
/// written if `Changes`, unless all tables are so small that they are there already.
template <bool Changes, class Core, class KeyOf, class Finish>
FARSIDE_HOT inline void with_windows(Core& m, std::size_t n, concurrency with, KeyOf key_of,
                                     Finish finish) {
  using window_type = bucket_window<typename Core::traits>;
  const table& one = m.tables.of(0);
  if (one.direct != nullptr &&
      one.capacity * m.members.size() * sizeof(typename Core::entry) <= cache_bytes) {
    window_type* none = nullptr;
    for (std::size_t i = 0; i < n; ++i) finish(i, m.place_of(key_of(i)), none);
    return;
  }
  std::array<key_location, in_flight_together> locations;
  std::unique_ptr<window_type[]> windows;
  for (std::size_t begin = 0; begin < n; begin += in_flight_together) {
    const std::size_t many = std::min(in_flight_together, n - begin);
    bool far = false;
    for (std::size_t i = 0; i < many; ++i) {
      const key_location where = locations[i] = m.place_of(key_of(begin + i));
      const table& t = m.tables.of(where.member);
      if (t.direct != nullptr) {
        const word* home = t.direct + where.home(t.capacity) * Core::bucket_words;
        Changes ? prefetch_to_write(home) : __builtin_prefetch(home);
      } else {
        far = true;
      }
    }
    if (far && !includes(with, concurrency::owner_only)) {
      if (!windows) windows = std::make_unique<window_type[]>(in_flight_together);
      std::array<transport::request, in_flight_together> requests;
      for (std::size_t i = 0; i < many; ++i) {
        window_type& w = windows[i] = {m.tables.of(locations[i].member), locations[i]};
        const ptr<word> from = w.from();
        note(m.c, operation::get, from.rank(), w.words() * 8, false);
        requests[i] = m.c.link.async_get(from.rank(), from.offset(), w.to(), w.words() * 8);
      }
      count_wait(m.c);
      for (std::size_t i = 0; i < many; ++i) requests[i].wait();
    }
    for (std::size_t i = 0; i < many; ++i)
      finish(begin + i, locations[i], far && windows ? &windows[i] : nullptr);
  }
}

template <class Core>
void find_many(const fast_handle& tables, const container_handle<Core>& state,
               std::span<const typename Core::K> keys,
               std::vector<std::optional<typename Core::V>>& results, concurrency with) {
  Core& m = *state;
  results.resize(keys.size());
  if (m.sends_to_owners(container_operation::find, with)) {
    find_there op;
    return call_owners(m, op, keys, with,
                       [&](std::size_t i, auto found) { results[i] = std::move(found.value); });
  }
  using T = typename Core::traits;
  // Copies, which stay in registers: behind a load with an order what they refer to is loaded anew.
  auto* const to = results.data();
  auto* const facts = &tables[0];
  with_windows<false>(
      m, keys.size(), with, [keys](std::size_t i) -> const auto& { return keys[i]; },
      [&m, keys, to, facts, with](std::size_t i, const key_location& where, auto* seen)
          __attribute__((always_inline)) {
            const auto found = try_find<T>(facts[where.member], where, keys[i]);
            if (found.what == result::done) [[likely]] {
              // Not as a whole: compilers put an optional together in memory, and a CPU waits.
              found.value ? void(to[i].emplace(*found.value)) : to[i].reset();
              return;
            }
            to[i] = m.template find<if_blocked::wait>(keys[i], with, seen).value;
          });
}

/// Inserts up to 64 keys by claiming their homes together: n atomics, n puts and two waits, if those
/// are empty. The rest is inserted one by one: keys whose home was taken, and those that may be among
/// them twice, as claims under way are in no order. Returns how many were new.
template <class Core, class Op, class Item, class T = typename Core::traits>
std::size_t insert_together(Core& m, Op& op, std::span<const Item> batch, concurrency with) {
  struct claim {
    bool is_won() const { return in != nullptr && seen == 0; }
    table* in = nullptr;  ///< null: not claimed
    rank_t member = 0;
    word home = 0;
    head wanted{};
    word seen = 0;
    transport::request request{};
    new_bucket<T> made{};
  };
  std::vector<claim> claims(batch.size());
  std::bitset<65536> known;  // some bits of fingerprints: two keys seldom have the same
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [key, value] = batch[i];
    const key_location where = m.place_of(key);
    auto bit = known[where.fingerprint() % known.size()];
    if (bit && !FARSIDE_MUTANT(map_claimed_twice)) continue;
    bit = true;
    claim& now = claims[i];
    now.made.set_key(key);
    now.wanted = head(now.made.fill(value), where.fingerprint(), 1);
    now.member = where.member;
    now.in = &m.tables.of(where.member);
    now.home = where.home(now.in->capacity);
  }
  for (claim& now : claims) {
    if (now.in == nullptr) continue;
    const ptr<word> at = now.in->bucket_at(now.home, T::bucket_words);
    note(m.c, operation::atomic, at.rank(), 8, false);
    now.request =
        m.c.link.async_compare_swap(at.rank(), at.offset(), word{0}, now.wanted.raw(), now.seen);
  }
  count_wait(m.c);
  for (claim& now : claims)
    if (now.in != nullptr) now.request.wait();
  std::size_t created = 0;
  for (claim& now : claims) {
    if (!now.is_won()) continue;
    far_access<T> in(m.c, *now.in, verify::seal);
    in.write(now.home, now.wanted, now.made.content, true, false);
    m.account_for(now.member, {result::done, true, counted::at_home});
    ++created;
  }
  if (created != 0) flush();
  for (std::size_t i = 0; i < batch.size(); ++i)
    if (!claims[i].is_won()) created += perform<if_blocked::wait>(m, op, batch[i], with).created();
  return created;
}

/// Updates many, in order; returns how many were new, or of erase how many were there. What the
/// fast path declines is done in full before the next, which may be of the same key.
template <class Core, class Op, class Item>
std::size_t update_many(const fast_handle& tables, const container_handle<Core>& state, Op op,
                        std::span<const Item> items, concurrency with) {
  Core& m = *state;
  std::size_t created = 0;
  if constexpr (Op::can_be_sent) {
    if (m.sends_to_owners(Op::kind, with)) {
      call_owners(m, op, items, with,
                  [&](std::size_t, const auto& done) { created += done.created(); });
      return created;
    }
  }
  if constexpr (Op::kind == container_operation::insert && Core::traits::in_place) {
    if (m.tables.of(0).direct == nullptr && !includes(with, concurrency::owner_only)) {
      for (; !items.empty(); items = items.subspan(std::min(in_flight_together, items.size())))
        created +=
            insert_together(m, op, items.first(std::min(in_flight_together, items.size())), with);
      return created;
    }
  }
  with_windows<true>(
      m, items.size(), with,
      [&](std::size_t i) -> const auto& { return key_of<typename Core::K>(items[i]); },
      [&](std::size_t i, const key_location& where, auto* seen) __attribute__((always_inline)) {
        const auto& key = key_of<typename Core::K>(items[i]);
        if (seen == nullptr)
          update(tables, state, op, where, key, op.update(items[i]), with,
                 [&](auto&& done) __attribute__((always_inline)) { created += done.created(); });
        else
          created += perform<if_blocked::wait>(m, op, items[i], with, seen).created();
      });
  return created;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
