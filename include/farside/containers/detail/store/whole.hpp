// What a store does as a whole: fences, and what all members do together.
#pragma once

#include <farside/containers/detail/map/hash_map_impl.hpp>
#include <farside/containers/detail/store/store_core.hpp>

#include <string>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// Throws on all members if `problem` is not empty on some: what the first of those says.
template <class Error>
void throw_together(const team& over, const std::string& what, const std::string& problem) {
  const rank_t first = all_reduce(problem.empty() ? over.size() : over.rank(), minimum(), over);
  if (first == over.size()) return;
  raise<Error>(what, broadcast(problem, first, over));
}

/// Collective.
template <class Core>
fence_report fence(Core& m) {
  auto note = calling<"store::fence">(m);
  m.posts.retry(m);
  m.until_quiet();
  const std::string stuck = m.posts.trouble(), twice = m.posts.first_duplicate();
  const fence_report mine = m.posts.report();
  const fence_report all = all_reduce(
      mine,
      [](fence_report a, const fence_report& b) {
        a.activated += b.activated, a.duplicates += b.duplicates, a.held_back += b.held_back;
        return a;
      },
      m.members);
  throw_together<allocation_error>(
      m.members, m.full_name() + ": fence: a post could not be activated, and stays pending. ",
      stuck);
  m.posts.forget(mine);
  if (m.options.on_duplicate == on_duplicate::error)
    throw_together<usage_error>(
        m.members,
        text(m.full_name(), ": fence: ", all.duplicates,
             " posts had a key that was there already, which on_duplicate::error forbids: "),
        twice);
  barrier(m.members);
  return all;
}

/// Collective.
template <class Core>
void clear(Core& m) {
  auto note = calling<"store::clear">(m);
  m.until_quiet();  // continuations would use what goes
  barrier(m.members);
  m.clear_all();
  barrier(m.members);
}

/// Goes over the entries of one member, or of all, one after another.
template <class Core>
class value_walk {
 public:
  using value_type = std::pair<typename Core::K, typename Core::value_type>;

  value_walk() = default;
  value_walk(Core& of, rank_t member, rank_t count) : of_(&of), slots_(of, member, count) {}

  std::optional<value_type> next() {
    while (auto slot = slots_.next()) {
      if (slot->second.is_parked()) continue;
      if (auto value = of_->value_of(slot->first, slot->second))
        return value_type(std::move(slot->first), *std::move(value));
    }
    return std::nullopt;
  }
  friend bool operator==(const value_walk& a, const value_walk& b) { return a.slots_ == b.slots_; }

 private:
  Core* of_ = nullptr;
  map::entry_walk<Core> slots_;
};
template <class Core>
using entry_iterator = copying_iterator<value_walk<Core>>;

/// Takes the memory of these entries' keys and objects, and gives it back.
template <class Core, class Blocks>
void try_room(Core& m, const Blocks& blocks) {
  struct object {
    rank_t member;
    place at;
  };
  struct objects_on_trial {
    Core& of;
    std::vector<object> taken;
    ~objects_on_trial() {
      if constexpr (!Core::in_bucket)
        for (const object& one : taken) of.memory.give_back(one.member, one.at);
    }
  };
  map::bytes_on_trial bytes;
  objects_on_trial objects{m, {}};
  for (const auto& entries : blocks)
    for (const auto& [key, value] : entries) {
      Core::traits::key_store::try_room(key, bytes.taken);
      if constexpr (!Core::in_bucket) {
        const rank_t member = m.place_of(key).member;
        objects.taken.push_back({member, m.memory.take(member, m.members.world_rank(member),
                                                       Core::layout::image_of(value).size())});
      }
    }
}

/// Collective: adds the entries of a file; values that are there are replaced. Copies that readers
/// have kept end with it.
template <class Core>
void load(Core& m, const std::string& path) {
  using value = typename Core::value_type;
  auto note = calling<"store::load">(m);
  map::load<value>(
      m, path, [&](const auto& blocks) { try_room(m, blocks); },
      [&](std::span<const std::pair<typename Core::K, value>> entries) {
        for (const auto& [key, v] : entries) {
          typename Core::outcome counts;
          while (m.template put_value<if_blocked::wait>(key, v, counts) != changed::yes &&
                 m.template replace_value<if_blocked::wait>(key, v) != changed::yes) {
          }
        }
      });
  m.forget_all();
}

/// Collective: all members have been given one placement, as far as its bytes tell.
template <class Core, class Placement>
void require_same_placement(Core& m, const Placement& mine) {
  if constexpr (std::is_empty_v<Placement> || !serializable<Placement>) {
    return;
  } else {
    const auto bytes = to_bytes(mine);
    const std::uint64_t own = hash_bytes(bytes.data(), bytes.size());
    const bool same = broadcast(own, 0, m.members) == own;
    throw_together<usage_error>(
        m.members, m.full_name() + ": its members were given different placements: ",
        same ? std::string()
             : text("that of rank ", m.c.link.rank(), " is not the one of rank ",
                    m.members.world_rank(0),
                    ". A key has one owner, so all must be given the same."));
  }
}

/// Collective: every entry goes to the member that `next` says. New ones are put first, and old ones
/// are erased when all are there, so that for lack of room nothing changes. All members change to
/// the other placement between two barriers: those who serve others place keys, too.
template <class Core, class Placement>
void move_to(Core& m, Placement next) {
  using K = typename Core::K;
  auto note = calling<"store::move_to">(m);
  require_same_placement(m, next);
  m.until_quiet();
  const auto before = m.placing;
  const typename Core::T::placing after(next);
  auto change_to = [&](const auto& placing) {
    barrier(m.members);
    m.placing = placing;
    m.forget_all();
    barrier(m.members);
  };
  std::vector<K> old, fresh;
  std::vector<std::pair<K, typename Core::value_type>> going;
  std::string problem = problem_of([&] {
    for (entry_iterator<Core> at(m, m.members.rank(), 1); at != entry_iterator<Core>(); ++at)
      if (after.of(0, at->first, m.members.size()).member != m.members.rank()) going.push_back(*at);
    return std::string();
  });
  throw_together<usage_error>(m.members, m.full_name() + ": move_to: nothing has moved. ", problem);
  change_to(after);
  problem = problem_of([&] {
    for (const auto& [key, value] : going) {
      typename Core::outcome counts;
      if (m.template put_value<if_blocked::wait>(key, value, counts) == changed::yes)
        fresh.push_back(key);
      old.push_back(key);
    }
    return std::string();
  });
  const bool failed = all_reduce(!problem.empty(), std::logical_or<>(), m.members);
  if (failed) {
    for (const K& key : fresh) m.erase_quietly(key);
    change_to(before);
  } else {
    change_to(before);
    for (const K& key : old) m.erase_quietly(key);
    change_to(after);
  }
  throw_together<allocation_error>(
      m.members, m.full_name() + ": move_to: all entries are where they were. ", problem);
  m.waiting.move_notes(m);
  m.until_quiet();
  barrier(m.members);
}

/// Collective.
template <class Check, class Core>
Check verify(Core& m) {
  auto note = calling<"store::verify">(m);
  barrier(m.members);
  Check found;
  map::iterator<Core> at(m, m.members.rank(), 1);
  for (; at != map::iterator<Core>(); ++at) {
    if (at->second.is_parked()) continue;
    ++found.entries;
    bool misplaced = true;
    try {
      misplaced = m.place_of(at->first).member != m.members.rank();
    } catch (const usage_error&) {
    }
    if (misplaced && found.misplaced++ == 0) found.first_misplaced = describe(at->first);
    if constexpr (!Core::in_bucket) {
      const place where = Core::place_in(at->second);
      if (where.at.rank() != m.c.link.rank() || !m.value_of(at->first, at->second)) ++found.lost;
    }
  }
  Check all = found;
  all.entries = all_reduce(found.entries, std::plus<>(), m.members);
  all.lost = all_reduce(found.lost, std::plus<>(), m.members);
  all.misplaced = all_reduce(found.misplaced, std::plus<>(), m.members);
  const rank_t first =
      all_reduce(found.misplaced == 0 ? m.members.size() : m.members.rank(), minimum(), m.members);
  if (first < m.members.size())
    all.first_misplaced = broadcast(found.first_misplaced, first, m.members);
  return all;
}

/// Collective. Parked buckets are no entries; the map's statistics know nothing of them.
template <class Core, class Statistics>
void add_statistics(Core& m, Statistics& to) {
  std::uint64_t parked = 0;
  for (map::iterator<Core> at(m, m.members.rank(), 1); at != map::iterator<Core>(); ++at)
    parked += at->second.is_parked();
  to.entries -= all_reduce(parked, std::plus<>(), m.members);
  to.waiting = all_reduce(std::uint64_t{m.waiting.noted()}, std::plus<>(), m.members);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
