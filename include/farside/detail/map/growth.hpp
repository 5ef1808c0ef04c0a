// engine: moving buckets to the next table.
//
//   empty           -> moved                                          one compare-and-swap
//   erased          -> moved                                          nothing goes along
//   plain v         -> plain v, frozen -> (copied) -> moved           nobody changes it once it is
//   frozen cell, value x   -> its word is frozen -> (copied) -> moved        an addition that meets
//   the frozen word repeats
//                                                                     in the next table
//
// A cell is copied by the one rank that froze it: only that one knows its value, as additions that
// do not count change the word all the same. Others wait until it is marked. Nobody waits in a
// circle: who moves a chunk may wait for one who moves a single bucket, who waits for nobody in
// that table; and copying into the next table may wait there, for those who move that one, and so
// on.
//
// Several ranks may move the same plain bucket: a copy is an insert that does nothing if the key
// has a bucket in the next table, erased or not, so that a slow copier does not bring back what was
// erased there. Operations on a key go on in the next table as soon as the key's own bucket, or the
// empty one at the end of its probe sequence, is marked moved; the copy is complete before that.
#pragma once

#include <farside/detail/map/engine.hpp>

#include <algorithm>
#include <exception>

namespace far::inline FARSIDE_BACKEND::detail::map {

template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::move_buckets(rank_t member, table& t, table& next,
                                               const std::vector<word>& which) {
  std::vector<word> again = which;
  while (!again.empty()) {
    std::vector<word> now;
    now.swap(again);
    reach(t, promise::nothing, [&](auto in) {
      struct mark {
        word index;
        entry content;
        bool alive;
      };
      std::vector<mark> marks;
      word copied = 0;
      std::exception_ptr no_room;
      for (word i : now) {
        mark m{i, {}, false};
        if (!freeze(in, i, m.content, m.alive)) continue;
        try {
          if (m.alive) copied += implant(member, next, m.content);
        } catch (const allocation_error&) {
          thaw(in, i, m.content);
          no_room = std::current_exception();
          break;
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
      // What could not be copied stays where it is, and so does the rest of its chunk.
      if (no_room) std::rethrow_exception(no_room);
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
      if (FARSIDE_MUTANT(map_frozen_cell_copied_by_others) && seen & cell::frozen) return true;
      if (!(seen & cell::frozen)) {
        if (in.change_cell(i, seen, seen | cell::frozen)) return true;
      } else {
        in.complete();  // who froze it may be waiting for what this rank has copied
        c.wait_round();
      }
    }
    in.forget();
  }
}

/// Gives a frozen bucket back to those who change it in this table.
template <class K, class V, class Hash, class Probing>
template <class Access>
void engine<K, V, Hash, Probing>::thaw(Access& in, word i, const entry& was) {
  head h = was.top();
  if (h.what() == state::cell) {
    // `was` is from before it was frozen; what was added since did not count.
    word seen = was.value()[0] | cell::frozen;
    while (!in.change_cell(i, seen, was.value()[0])) {
    }
  } else {
    in.change(i, h, h.thaw());
  }
  in.settle();
}

/// Inserts a copy of a frozen bucket, unless its key is known to `next` already. Returns how many
/// buckets that took.
template <class K, class V, class Hash, class Probing>
word engine<K, V, Hash, Probing>::implant(rank_t member, table& next, const entry& e) {
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
  table* to = &next;
  while (true) {
    bool taken = false;
    bool done = reach(*to, promise::nothing, [&](auto in) {
      entry other;
      position at = probe(in, *to, p, *key, other);
      switch (at.what) {
        case found::mine:
        case found::mine_moved:
          return true;
        case found::gone:
          to = &tables.next_of(member, *to);
          return false;
        case found::full:
          grow(member, *to);
          to = &tables.next_of(member, *to);
          return false;
        case found::empty:
          break;
      }
      head expected;
      if (!in.change(at.index, expected, h)) return false;
      in.write(at.index, h, copy, true);
      taken = true;
      return true;
    });
    if (done) return taken;
  }
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

/// Those whose table was left before a barrier can be freed after it.
template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::sort_dropped() {
  if (dropped_.empty()) return;
  auto in_use = std::partition(dropped_.begin(), dropped_.end(), [&](const dropped& key) {
    return !tables.in_use(key.member, key.table_offset);
  });
  unreachable_.assign(dropped_.begin(), in_use);
  dropped_.erase(dropped_.begin(), in_use);
}
template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::free_dropped(std::vector<dropped>& keys) {
  for (const dropped& key : keys) key_store::release(key.stored);
  keys.clear();
}

/// Sees to it that the bucket of a key is moved, and goes on to the next table.
template <class K, class V, class Hash, class Probing>
void engine<K, V, Hash, Probing>::move_one(table*& t, const place& p, position at) {
  give_up_if_in_a_hurry(c);
  table& next = tables.next_of(p.member, *t);
  move_buckets(p.member, *t, next, {at.index});
  t = &next;
}

template <class K, class V, class Hash, class Probing>
auto engine<K, V, Hash, Probing>::measure(table& t) -> measured {
  measured result;
  result.buckets = t.capacity;
  for (word i = 0; i < t.capacity; ++i) {
    reach(t, promise::nothing, [&](auto in) {
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
