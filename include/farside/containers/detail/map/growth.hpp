// Moving buckets to the next table (docs/protocols/hash_map.md, "Growth").
//
//   empty                                            ->  moved     one compare-and-swap
//   erased                                           ->  moved     nothing goes along
//   plain v  ->  plain v, frozen       ->  (copied)  ->  moved     nobody changes it once frozen
//   cell     ->  cell, its word frozen ->  (copied)  ->  moved     an addition that meets the frozen
//                                                                  word is repeated in the next table
//
// Each bucket is moved by one rank, which has claimed its chunk. A move cannot fail once it has
// begun, so nothing is ever unfrozen: the next table has at least as many buckets, and gets no other
// entries before all has been moved (settled_next). Only the mover needs to know the number of a
// frozen cell. Operations on a key go on in the next table as soon as the key's own bucket, or the
// empty one at the end of its probe sequence, is marked moved; the copy is complete before that.
//
// Nobody waits in a circle. Whoever has claimed a chunk waits for puts under way only, whose ranks
// do not wait, and runs neither handlers nor continuations meanwhile (undisturbed). Everybody else
// holds nothing while it waits.
#pragma once

#include <farside/containers/detail/map/directory.hpp>
#include <farside/containers/detail/map/probe.hpp>
#include <farside/core/detail/checked_file.hpp>
#include <farside/core/detail/crash_report.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Keeps everybody from changing bucket `i`, of which `out` becomes a copy. False: nothing goes along,
/// and it is marked moved already. `drop(out)` is called for a key that is left behind.
template <class T, class Access, class Drop>
bool freeze(Access& in, word i, typename T::entry& out, Drop drop) {
  for (;; in.forget()) {
    head h = in.top(i);
    if (h.moved()) return false;
    if (h.is_empty()) {
      if (FARSIDE_MUTANT(map_empty_not_marked)) return false;
      if (change_head(in, i, h, head().move())) return false;
    } else if (h.what() == state::plain && !h.frozen() && !FARSIDE_MUTANT(map_plain_not_frozen)) {
      change_head(in, i, h, h.freeze());
    } else if (in.template read<if_blocked::wait>(i, h, out) == read_result::whole) {
      word seen = out.value()[0];
      if (h.what() == state::cell && !FARSIDE_MUTANT(map_cell_not_frozen) &&
          !in.change(i, at_value, seen, seen | cell::frozen))
        continue;
      if (h.what() == state::cell ? !(seen & cell::absent) : h.what() == state::plain) return true;
      // A tombstone may be revived until it is marked. Then it is looked at again.
      if (change_head(in, i, h, h.move())) return drop(out), false;
    }
  }
}

/// Puts a copy of a frozen bucket into `next`, in the first empty bucket of its key's probe
/// sequence. There is one: `next` has at least as many buckets as the table that moves, and until
/// all of that has been moved it gets nothing else. Nor is the key there already, as each bucket
/// has one mover.
template <class Core, class T = typename Core::traits>
void copy_into(Core& m, table& next, const typename T::entry& e) {
  std::optional<typename T::key_type> key;
  while (!(key = T::key_store::unpack(e.key()))) m.c.wait_round();
  const key_location where = m.place_of(*key);
  typename T::entry copy = e;
  state what = e.top().what();
  if constexpr (T::cells) {
    if (what == state::cell) {
      if (e.value()[0] & cell::widen || cell::strained(e.value()[0])) {
        what = state::plain;
        T::value_store::pack(cell::decode<typename T::mapped_type>(e.value()[0]), copy.value());
      } else {
        copy.value()[0] &= cell::low;
      }
    }
  }
  const head h(what, where.fingerprint(), 1);
  m.with_access(next, [&](auto& in) {
    probe_cursor<T> at(where.home(next.capacity), next.capacity);
    do {
      head expected;
      if (!in.top(at.index()).is_empty() || !change_head(in, at.index(), expected, h)) continue;
      return in.write(at.index(), h, copy, true, false);
    } while (at.next());
    raise(m.kind_name, " '", m.label, "': a table of ", next.capacity,
          " buckets is full while another one is moved into it. This is a mistake of the library, "
          "or of a probing policy that does not reach all buckets.");
  });
}

template <class Core, class T = typename Core::traits>
void move_buckets(Core& m, rank_t member, table& t, table& next, word begin, word end) {
  m.with_access(t, [&](auto& in) {
    std::vector<std::pair<word, head>> copied;
    copied.reserve(end - begin);  // what fails, fails before a bucket is frozen
    for (word i = begin; i < end; ++i) {
      typename T::entry content;
      if (!freeze<T>(in, i, content, [&](const auto& e) { m.drop_key(member, t, e); })) continue;
      copy_into(m, next, content);
      copied.emplace_back(i, content.top());
    }
    if (copied.empty()) return;
    flush(t.rank());
    fetch_add(next.field(header::at_used), copied.size());
    for (auto [i, h] : copied) change_head(in, i, h, h.move());
  });
}

/// Moves chunks of `t` until all have been claimed.
template <class Core>
void help(Core& m, rank_t member, table& t) {
  table& next = m.tables.next_of(member, t);
  while (true) {
    undisturbed until_moved(m.c);  // others wait for what it claims
    const word mine = fetch_add(t.field(header::at_claimed), 1);
    if (mine >= t.chunks()) return;
    const word end = std::min((mine + 1) * chunk, t.capacity);
    // Few at a time: readers of a frozen cell wait until it is marked.
    for (word i = mine * chunk; i < end; i += 16) {
      const std::string problem = problem_of([&] {
        move_buckets(m, member, t, next, i, std::min(i + 16, end));
        return std::string();
      });
      if (problem.empty()) continue;
      // There is no way back, and others wait for it. So what a hash or a serializer throws for a
      // key that it took before, or a lack of ordinary memory, ends the job.
      end_job(m.c,
              text("farside: rank ", m.c.link.rank(), ": ", m.full_name(),
                   ": an exception while a table was moved: ", problem,
                   ". The other ranks wait for what this one moves, and there is no way back. "
                   "Hashes, and serializers of keys, must not throw for keys that are in a map."),
              false);
    }
    if (fetch_add(t.field(header::at_done), 1) + 1 == t.chunks()) m.tables.finish_move(member);
  }
}

/// Moves `t` to a table of `capacity` buckets, together with whoever else is at it. Returns when
/// all has been moved or is being moved by others. Only making that table can fail.
template <class Core>
void move_table(Core& m, rank_t member, table& t, word capacity) {
  // What this rank has stored under concurrency::owner_only comes before.
  if (t.own != nullptr) m.c.link.flush(t.rank());
  m.tables.begin_move(t, capacity);
  help(m, member, t);
}
/// The same. Returns why there is no room for that table, and nothing has changed then; else empty.
template <class Core>
std::string try_to_move(Core& m, rank_t member, table& t, word capacity) {
  try {
    move_table(m, member, t, capacity);
    return {};
  } catch (const allocation_error& e) {
    return e.what();
  }
}

/// The table that `t` moves to, when all of `t` has been moved: helps, and waits for those who
/// help. An operation that may create an entry goes on there: what is moved has room for certain
/// then.
template <class Core>
table& settled_next(Core& m, rank_t member, table& t) {
  help(m, member, t);
  while (m.tables.read_header(t.rank(), t.at.offset()).done < t.chunks() &&
         !FARSIDE_MUTANT(map_creates_before_settled))
    m.c.wait_round();
  return m.tables.next_of(member, t);
}

/// The table of a member when no move of it is under way.
template <class Core>
table& settled(Core& m, rank_t member) {
  while (true) {
    table& t = m.tables.of(member);
    if (!m.tables.has_next(t)) return t;
    settled_next(m, member, t);
  }
}

template <class Core>
word wanted_capacity(Core& m, const table& t) {
  const header h = m.tables.read_header(t.rank(), t.at.offset());
  const word dead = std::min<word>(static_cast<std::int64_t>(h.dead) < 0 ? 0 : h.dead, h.used);
  // Mostly tombstones: the same size will do.
  return 3 * (h.used - dead) < t.capacity ? t.capacity : 2 * t.capacity;
}

/// There is no bucket left: a smaller step if need be.
template <class Core>
void grow(Core& m, rank_t member, table& t) {
  word wanted = wanted_capacity(m, t);
  for (std::string why; !(why = try_to_move(m, member, t, wanted)).empty();) {
    if (wanted < t.capacity + t.capacity / 16 + 8)
      raise<allocation_error>(
          m.kind_name, " '", m.label, "' has no room for another entry on rank ", t.rank(),
          ": its table of ", t.capacity,
          " buckets is full, and a larger one does not fit. All entries are still there. ", why);
    wanted = t.capacity + (wanted - t.capacity) / 2;
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
