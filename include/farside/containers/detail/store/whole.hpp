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
  m.shared->counts.until_all_handled(
      [&] {
        m.waiting.wake_uncalled(m);
        m.posts.settle(m);
        m.choice.settle(m.c);
        complete_begun(m.c);
        m.c.link.flush();
      },
      m.members);
  const std::string stuck = m.posts.trouble(), twice = m.posts.first_duplicate();
  fence_report mine = m.posts.take_report();
  const fence_report all = all_reduce(
      mine,
      [](fence_report a, const fence_report& b) {
        a.activated += b.activated, a.duplicates += b.duplicates, a.held_back += b.held_back;
        return a;
      },
      m.members);
  throw_together<allocation_error>(
      m.members, m.full_name() + ": fence: a post could not be activated, and stays pending. ", stuck);
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
  m.choice.settle(m.c);
  barrier(m.members);
  m.clear_all();
  barrier(m.members);
}

/// Collective.
template <class Core>
void reserve(Core& m, std::size_t entries) {
  map::reserve(m, entries);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
