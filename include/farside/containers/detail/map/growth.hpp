// engine: moving buckets to the next table.
//
//   empty                                            ->  moved     one compare-and-swap
//   erased                                           ->  moved     nothing goes along
//   plain v  ->  plain v, frozen       ->  (copied)  ->  moved     nobody changes it once frozen
//   cell     ->  cell, its word frozen ->  (copied)  ->  moved     an addition that meets the
//   frozen
//                                                                  word repeats in the next table
//
// Each bucket is moved by one rank, which has claimed its chunk. A move cannot fail once it has
// begun, so nothing is ever unfrozen. The next table is made first, with at least as many buckets,
// and gets no other entries before all has been moved: who wants to create one there, or to change
// what is frozen, helps and waits (settled_next). Nor does the next table begin to move before.
//
// So a key is copied once, into a table that does not know it, and only the mover needs to know the
// number of a frozen cell: additions that do not count change its word all the same. Operations on
// a key go on in the next table as soon as the key's own bucket, or the empty one at the end of its
// probe sequence, is marked moved; the copy is complete before that.
//
// Nobody waits in a circle. Whoever has claimed a chunk waits for puts under way only, whose ranks
// do not wait, and runs neither handlers nor continuations meanwhile (undisturbed). Everybody else
// holds nothing while it waits.
#pragma once

#include <farside/containers/detail/map/engine.hpp>

#include <algorithm>

namespace far::inline FARSIDE_BACKEND::detail::map {

template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::move_buckets(rank_t member, table& t, table& next,
                                               const std::vector<word>& which) {
  std::vector<word> again = which;
  while (!again.empty()) {
    std::vector<word> now;
    now.swap(again);
    reach(t, concurrency::nothing, [&](auto in) {
      struct mark {
        word index;
        entry content;
        bool alive;
      };
      std::vector<mark> marks;
      word copied = 0;
      for (word i : now) {
        mark m{i, {}, false};
        if (!freeze(in, i, m.content, m.alive)) continue;
        if (m.alive) {
          copy_into(next, m.content);
          ++copied;
        }
        marks.push_back(m);
      }
      if (copied != 0) {
        in.complete();
        fetch_add(next.field(header::at_used), copied);
      }
      for (mark& m : marks) {
        head expected = m.content.top();
        if (in.change(m.index, expected, expected.move())) {
          if (!m.alive) drop_key(member, t, m.content);
        } else if (!expected.moved()) {
          again.push_back(m.index);  // a tombstone that was revived meanwhile
        }
      }
    });
  }
}

/// Keeps everybody from changing bucket `i`, of which `out` becomes a copy. False: there is nothing
/// to copy or to mark any more.
template <class K, class V, class Hash, class Probing>
template <class Access>
bool engine<K, V, Hash, Probing>::freeze(Access& in, word i, entry& out, bool& alive) {
  while (true) {
    head h = in.top(i);
    if (h.moved()) return false;
    if (h.is_empty()) {
      if (FARSIDE_MUTANT(map_empty_not_marked)) return false;
      if (in.change(i, h, head().move())) return false;
    } else if (h.what() == state::plain && !h.frozen() && !FARSIDE_MUTANT(map_plain_not_frozen)) {
      in.change(i, h, h.freeze());
    } else if (in.read(i, h, out)) {
      alive = h.what() != state::erased;
      if (h.what() != state::cell) return true;
      word seen = out.value()[0];
      alive = !(seen & cell::absent);
      if (FARSIDE_MUTANT(map_cell_not_frozen)) return true;
      if (in.change_cell(i, seen, seen | cell::frozen)) return true;
    }
    in.forget();
  }
}

/// Puts a copy of a frozen bucket into `next`, in the first empty bucket of its key's probe
/// sequence. There is one: `next` has at least as many buckets as the table that moves, and until
/// all of that has been moved it gets nothing else. Nor is the key there already, as each bucket
/// has one mover.
template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::copy_into(table& next, const entry& e) {
  std::optional<K> key;
  while (!(key = key_store::unpack(e.key()))) c.wait_round();
  place p = place_of(*key);
  entry copy = e;
  state what = e.top().what();
  if constexpr (cells) {
    if (what == state::cell) {
      if (e.value()[0] & cell::widen || cell::strained(e.value()[0])) {
        what = state::plain;
        value_store::pack(cell::decode<V>(e.value()[0]), copy.value());
      } else {
        copy.value()[0] &= cell::low;
      }
    }
  }
  head h(what, p.fingerprint(), 1);
  reach(next, concurrency::nothing, [&](auto in) {
    word home = p.home(next.capacity);
    for (word step = 0; step < next.capacity + Probing::extra; ++step) {
      word i = Probing::at(home, step, next.capacity);
      head expected;
      if (!in.top(i).is_empty() || !in.change(i, expected, h)) continue;
      in.write(i, h, copy, true);
      return;
    }
    raise(kind_name, " '", label, "': a table of ", next.capacity,
          " buckets is full while another one is moved into it. This is a mistake of the library, "
          "or of a probing policy that does not reach all buckets.");
  });
}

/// The bytes of a key that did not go along. Who still reads the old table compares with them.
template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::drop_key(rank_t member, const table& t, const entry& e) {
  if constexpr (!key_store::in_place) {
    dropped key{member, t.at.offset(), {}};
    std::copy_n(e.key(), entry::key_words, key.stored);
    std::lock_guard lock(c.mutex);
    dropped_.push_back(key);
  }
}

/// Retires those whose table has been left.
template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::retire_dropped() {
  auto in_use = std::partition(dropped_.begin(), dropped_.end(), [&](const dropped& key) {
    return !tables.in_use(key.member, key.table_offset);
  });
  for (auto key = dropped_.begin(); key != in_use; ++key) unreachable_.add(*key);
  dropped_.erase(dropped_.begin(), in_use);
  unreachable_.before_barrier();
}

template <class K, class V, class Hash, class Probing>
auto engine<K, V, Hash, Probing>::measure(table& t) -> measured {
  measured result;
  result.buckets = t.capacity;
  for (word i = 0; i < t.capacity; ++i) {
    reach(t, concurrency::nothing, [&](auto in) {
      entry e;
      head h = in.top(i);
      if (h.what() == state::empty || !in.read(i, h, e)) return;
      bool again;
      if (!value_in(e, again)) {
        ++result.erased;
        return;
      }
      ++result.entries;
      auto key = key_store::unpack(e.key());
      if (!key) return;
      word home = place_of(*key).home(t.capacity), probes = 1;
      while (Probing::at(home, probes - 1, t.capacity) != i) ++probes;
      result.probes += probes;
      result.most_probes = std::max(result.most_probes, probes);
    });
  }
  return result;
}

template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::release_bytes(table& first) {
  for (table* t = &first;;) {
    local_access<entry> in(c, *t);
    for (word i = 0; i < t->capacity; ++i) {
      head h = in.top(i);
      if (h.what() == state::empty || h.moved()) continue;
      entry e;
      in.read_quiet(i, e);
      key_store::release(e.key());
      if (h.what() == state::plain) value_store::release(e.value());
    }
    if (tables.read_header(t->rank(), t->at.offset()).next == 0) return;
    t = &tables.next_of(members.rank(), *t);
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
