// engine: many operations in flight together, and one whose first step is in flight.
#pragma once

#include <farside/containers/detail/map/engine.hpp>
#include <farside/containers/detail/map/wide_places.hpp>

#include <algorithm>
#include <bitset>
#include <memory>
#include <span>

namespace far::inline FARSIDE_BACKEND::detail::map {

inline constexpr std::size_t in_flight_together = 64;

/// Calls `finish(i, place, window)` for keys 0 to n - 1, in order, after the first windows of many
/// of them have been fetched together: n gets and one wait for each 64. Where memory is coherent
/// there are no windows (null): the lines are on their way to the cache instead, to be written if
/// `Changes`.
template <bool Changes, class Engine, class KeyOf, class Finish>
void with_windows(Engine& e, std::size_t n, concurrency with, KeyOf key_of, Finish finish) {
  context& c = e.c;
  constexpr std::size_t words = Engine::bucket_words;
  using window_type = prefetched<Engine>;
  std::vector<place> places;
  places.reserve(in_flight_together);
  std::unique_ptr<window_type[]> windows;
  for (std::size_t begin = 0; begin < n; begin += in_flight_together) {
    std::size_t many = std::min(in_flight_together, n - begin);
    places.clear();
    bool far = false;
    for (std::size_t i = 0; i < many; ++i) {
      places.push_back(e.place_of(key_of(begin + i)));
      table& t = e.tables.of(places.back().member);
      if (t.direct != nullptr) {
        const word* home = t.direct + places.back().home(t.capacity) * words;
        Changes ? prefetch_to_write(home) : __builtin_prefetch(home);
      } else {
        far = true;
      }
    }
    if (far && !(includes(with, concurrency::owner_only))) {
      if (!windows) windows = std::make_unique<window_type[]>(in_flight_together);
      std::array<transport::request, in_flight_together> requests;
      for (std::size_t i = 0; i < many; ++i) {
        window_type& w = windows[i];
        w.in = &e.tables.of(places[i].member);
        w.first = places[i].home(w.in->capacity);
        w.count = std::min<word>(w.buckets.size(), w.in->capacity - w.first);
        ptr<word> from = w.in->bucket_at(w.first, words);
        std::size_t bytes = w.count * words * 8;
        note(c, operation::get, from.rank(), bytes, false);
        requests[i] = c.link.async_get(from.rank(), from.offset(), w.buckets.data(), bytes);
      }
      count_wait(c);
      for (std::size_t i = 0; i < many; ++i) requests[i].wait();
    }
    for (std::size_t i = 0; i < many; ++i)
      finish(begin + i, places[i], far && windows ? &windows[i] : nullptr);
  }
}

/// In steps, each for all of the keys, so that one fence serves them all:
///
///   where    the home buckets and those after them, on their way to the cache
///   cells    value and key of the home or one of the two buckets after it, without a branch: if it
///            is not there it is put on a list, and looked for again in the buckets that follow
///
///   where    the same
///   heads    of the first bucket that is the key's by its fingerprint, or empty
///   bodies   of plain buckets the seal, then key and value
///   results  of plain buckets the head again: has it changed since?
///
/// These are the loads of find_at_once(), with its reasons. A fence comes first, and one last: what
/// this rank has done before and will do after is in order with all of it.
template <class K, class V, class Hash, class Probing>
template <bool Quiet, class Missed>
void engine<K, V, Hash, Probing>::find_together(const K* keys, std::size_t n,
                                                std::optional<V>* results, Missed missed) const {
  constexpr std::size_t most = prefetched_together;
  if constexpr (!Quiet) full_fence();
  [[maybe_unused]] const auto first_views = tables.views();
  sought where;
  for (std::size_t begin = 0; begin < n; begin += most, keys += most, results += most) {
    std::size_t many = std::min(most, n - begin);
    // Each time: what was missed may have gone to other tables.
    const auto views = FARSIDE_MUTANT(map_views_kept) ? first_views : tables.views();
    auto not_clear = [&](std::size_t i) { missed(begin + i); };
    if (views.common_capacity != 0) [[likely]] {
      std::size_t done = seek_widely(views, keys, many, where);
      if (done != many) [[unlikely]]
        seek(keys, done, many, where, [views](rank_t member) { return views.quickly(member); });
    } else {
      seek(keys, 0, many, where, [&](rank_t member) { return views[member]; });
    }
    if constexpr (cells)
      take_cells<Quiet>(where, keys, many, results, not_clear);
    else
      take_bodies<Quiet>(where, keys, many, results, not_clear);
  }
  if constexpr (!Quiet) acquire_fence();
}

/// A function of its own, as its loop has constants that all registers are needed for. So `view_of`
/// shall hold what it needs: what it refers to would be loaded anew for each key.
template <class K, class V, class Hash, class Probing>
template <class ViewOf>
[[gnu::noinline]] void engine<K, V, Hash, Probing>::seek(const K* keys, std::size_t begin,
                                                         std::size_t end, sought& where,
                                                         ViewOf view_of) const {
  const rank_t members = member_count_;
#pragma GCC unroll 2
  for (std::size_t i = begin; i < end; ++i) {
    place p(hash_of(keys[i]), members);
    view t = view_of(p.member);
    where.fetch(i, t.buckets + p.home(t.capacity) * bucket_words);
    where.wanted[i] = spot::wanted_of(p);
  }
}

/// As many of the first as it can, on CPUs that can (wide_places.hpp).
template <class K, class V, class Hash, class Probing>
[[gnu::noinline]] std::size_t engine<K, V, Hash, Probing>::seek_widely(
    [[maybe_unused]] const directory::several& views, [[maybe_unused]] const K* keys,
    [[maybe_unused]] std::size_t n, [[maybe_unused]] sought& where) const {
  if constexpr (mixes_words) {
    n &= ~std::size_t{3};
    [[maybe_unused]] const auto* words = reinterpret_cast<const word*>(keys);
    [[maybe_unused]] auto fetch = [&where, parts = views.quick](std::size_t i, word member,
                                                                word home) {
      auto* table = reinterpret_cast<std::byte*>((*parts)[member].buckets);
      where.fetch(i, reinterpret_cast<word*>(table + home));
    };
#if defined(__x86_64__)
    if (n == 0 || !has_wide_words()) return 0;
    word member[prefetched_together], home[prefetched_together];
    place_words(words, n, member_count_, views.common_capacity, bucket_words * 8, spot::fresh,
                member, home, where.wanted);
    for (std::size_t i = 0; i < n; ++i) fetch(i, member[i], home[i]);
    return n;
#elif defined(__aarch64__)
    place_words<bucket_words * 8>(words, n, member_count_, views.common_capacity, spot::fresh,
                                  [&](std::size_t i, word member, word home, word wanted) {
                                    fetch(i, member, home);
                                    where.wanted[i] = wanted;
                                  });
    return n;
#endif
  }
  return 0;
}

template <class K, class V, class Hash, class Probing>
template <bool Quiet, class Missed>
FARSIDE_HOT inline void engine<K, V, Hash, Probing>::take_cells(const sought& where, const K* keys,
                                                                std::size_t n,
                                                                std::optional<V>* results,
                                                                Missed missed) {
  // The value of a bucket, and its key, which comes after.
  auto load = [](const word* at, word& value, word* held) {
    value = Quiet ? peek(at[2]) : peek_first(at[2]);
    for (std::size_t k = 0; k < key_store::words; ++k)
      held[k] = peek(at[2 + entry::value_words + k]);
  };
  std::size_t left[prefetched_together], others = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const spot here(where.at[i], where.wanted[i]);
    word *at = here.likely(), h = peek(at[0]), value, held[key_store::words];
    load(at, value, held);
    value -= cell::bias;
    results[i] = std::optional<V>(static_cast<V>(value));
    // Is it that one, or left over? As numbers, which need no branches.
    word unlike = static_cast<std::uint32_t>(h ^ here.wanted) | cell::unlike_value<V>(value);
    left[others] = i;
    others += (unlike != 0) | !*key_store::equals(held, keys[i]);
  }
  // Where few are left they most likely lie further on. Where it is found there it is, but only who
  // comes from the home knows that a key is not there. Where many are left most are not there.
  const bool further = others * 2 <= n;
  for (std::size_t k = 0; k < others; ++k) {
    const std::size_t i = left[k];
    const spot here(where.at[i], where.wanted[i]);
    word h;
    auto found_from = [&](word* at) {
      word value, held[key_store::words];
      for (h = peek(at[0]); here.is_another(h);) h = peek((at += bucket_words)[0]);
      load(at, value, held);
      if (!here.fits(h) || !cell::simple(value) || !*key_store::equals(held, keys[i])) return false;
      results[i] = static_cast<V>(value - cell::bias);
      return true;
    };
    if (!further && here.ends_soon()) {
      results[i].reset();
      continue;
    }
    if (further && found_from(here.home + 3 * bucket_words)) continue;
    if (!(further && FARSIDE_MUTANT(map_home_not_looked_at)) && found_from(here.home)) continue;
    if (h == 0)
      results[i].reset();
    else
      missed(i);
  }
}

template <class K, class V, class Hash, class Probing>
template <bool Quiet, class Missed>
FARSIDE_HOT inline void engine<K, V, Hash, Probing>::take_bodies(sought& where, const K* keys,
                                                                 std::size_t n,
                                                                 std::optional<V>* results,
                                                                 Missed missed) {
  struct {
    word head;
    word body[bucket_words - 2];
  } copies[prefetched_together];
  for (std::size_t i = 0; i < n; ++i) {
    const spot here(where.at[i], where.wanted[i]);
    word *at = here.first(), h = peek(at[0]);
    while (here.is_another(h)) h = peek((at += bucket_words)[0]);
    where.at[i] = at;
    copies[i].head = h;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const word* at = where.at[i];
    word seal = Quiet ? peek(at[1]) : peek_first(at[1]);
    for (std::size_t k = 0; k + 2 < bucket_words; ++k) copies[i].body[k] = peek(at[2 + k]);
    if (seal != copies[i].head >> 32) where.wanted[i] = 0;  // no head is that, but an empty one
  }
  if constexpr (!Quiet) acquire_fence();
  for (std::size_t i = 0; i < n; ++i) {
    const word h = copies[i].head, *body = copies[i].body;
    if (h != 0 && static_cast<std::uint32_t>(h ^ where.wanted[i]) == 0 &&
        *key_store::equals(body + entry::value_words, keys[i]) &&
        (Quiet || peek(where.at[i][0]) == h)) {
      results[i] = value_store::unpack(body);
    } else if (h == 0) {
      results[i].reset();
    } else {
      missed(i);
    }
  }
}

/// Updates many entries in order, by `to_update(value)` each; returns how many were new. Where
/// memory is coherent the lines come to the cache together, to be written; elsewhere the first
/// windows, see with_windows().
template <class Engine, class Pair, class ToUpdate>
std::size_t update_many(Engine& e, std::span<const Pair> pairs, concurrency with,
                        ToUpdate to_update) {
  std::size_t created = 0;
  for (std::size_t many; !pairs.empty(); pairs = pairs.subspan(many)) {
    if constexpr (Engine::has_quick_ways) {
      if (e.tables.quick().changeable != 0) {
        many = std::min(in_flight_together, pairs.size());
        created += e.update_quickly_together(pairs.first(many), with, to_update);
        continue;
      }
    }
    many = std::min(16 * in_flight_together, pairs.size());  // then there may be a quick way again
    with_windows<true>(
        e, many, with, [&](std::size_t i) -> const auto& { return pairs[i].first; },
        [&](std::size_t i, const place& p, auto* window) {
          const auto& [key, value] = pairs[i];
          created += e.update(key, p, to_update(value), with, window).created;
        });
  }
  return created;
}

/// Inserts many pairs; returns how many were new. Homes are claimed together: n atomics, n puts and
/// two waits for each 64, if they are empty.
template <class Engine, class Pair>
std::size_t insert_many(Engine& e, std::span<const Pair> pairs, concurrency with) {
  using value_type = std::remove_cvref_t<decltype(pairs[0].second)>;
  auto to_update = [](handed<value_type> value) { return keep<value_type>{value}; };
  if (e.tables.of(0).direct != nullptr || includes(with, concurrency::owner_only))
    return update_many(e, pairs, with, to_update);
  std::size_t created = 0;
  auto one_by_one = [&](const Pair& pair) {
    const auto& [key, value] = pair;
    created += e.update(key, e.place_of(key), to_update(value), with).created;
  };
  if constexpr (Engine::in_place) {
    std::vector<std::size_t> left;
    for (; !pairs.empty(); pairs = pairs.subspan(std::min(in_flight_together, pairs.size()))) {
      auto batch = pairs.first(std::min(in_flight_together, pairs.size()));
      left.clear();
      created += e.claim_homes(batch, left);
      for (std::size_t i : left) one_by_one(batch[i]);
    }
  } else {
    for (const Pair& pair : pairs) one_by_one(pair);
  }
  return created;
}

/// Homes come to the cache together. What the quick way does not do an ordinary update does, and
/// before the next key, which may be the same. A table that begins to move meanwhile says so in its
/// buckets, which are there until this rank comes to a barrier.
template <class K, class V, class Hash, class Probing>
template <class Pair, class ToUpdate>
[[gnu::noinline]] std::size_t engine<K, V, Hash, Probing>::update_quickly_together(
    std::span<const Pair> batch, concurrency with, ToUpdate to_update) {
  const quick_tables& in = tables.quick();
  // Handlers may run in the midst of a barrier, after which tables may be gone: they only look.
  const message_service* post = c.messages.load(std::memory_order_acquire);
  const bool near = in.changeable <= in_caches && (post == nullptr || !post->inside_handler());
  spot where[in_flight_together];
  std::size_t created = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    where[i] = spot(in, in.changeable, batch[i].first);
    where[i].fetch_to_change(near);
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const auto& [key, value] = batch[i];
    outcome done;
    if (!update_quickly<false>(in, where[i], key, to_update(value), done,
                               [this](rank_t member) { count_away(member); })) [[unlikely]]
      done.created = update(key, place_of(key), to_update(value), with).created;
    created += done.created;
  }
  return created;
}

/// Claims the home buckets of up to 64 new keys together. `left`: those whose home was not empty,
/// and those that may be among them twice, as claims under way are in no order; in the order given.
template <class K, class V, class Hash, class Probing>
template <class Pair>
std::size_t engine<K, V, Hash, Probing>::claim_homes(std::span<const Pair> batch,
                                                     std::vector<std::size_t>& left) {
  struct claim {
    std::size_t of;
    place p;
    table* in;
    head wanted;
    word seen;
    transport::request request;
  };
  std::vector<image> images(batch.size());
  std::vector<claim> claims;
  claims.reserve(batch.size());
  std::bitset<65536> known;  // some bits of fingerprints: two keys seldom have the same
  for (std::size_t i = 0; i < batch.size(); ++i) {
    place p = place_of(batch[i].first);
    auto bit = known[p.fingerprint() % known.size()];
    if (bit && !FARSIDE_MUTANT(map_claimed_twice)) {
      left.push_back(i);
      continue;
    }
    bit = true;
    table& t = tables.of(p.member);
    images[i].set_key(batch[i].first);
    claims.push_back({i, p, &t, head(fill(images[i], batch[i].second), p.fingerprint(), 1), 0, {}});
  }
  for (claim& now : claims) {
    ptr<word> at = now.in->bucket_at(now.p.home(now.in->capacity), bucket_words);
    note(c, operation::atomic, at.rank(), 8, false);
    now.request =
        c.link.async_compare_swap(at.rank(), at.offset(), word{0}, now.wanted.raw(), now.seen);
  }
  count_wait(c);
  std::size_t created = 0;
  for (claim& now : claims) now.request.wait();
  for (claim& now : claims) {
    if (now.seen != 0) {
      left.push_back(now.of);
      continue;
    }
    far_access<entry> in(c, *now.in);
    in.write(now.p.home(now.in->capacity), now.wanted, images[now.of].content, true);
    ++created;
  }
  std::ranges::sort(left);
  if (created != 0) flush();
  for (claim& now : claims)
    if (now.seen == 0) count_taken(now.p.member, *now.in, 0);
  return created;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
