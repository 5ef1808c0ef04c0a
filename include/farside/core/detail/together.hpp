// Collectives that can fail: if one member cannot do its part, none has done anything, and all
// throw. Without that the others would wait for a member that has left.
#pragma once

#include <farside/core/collectives.hpp>
#include <farside/core/memory.hpp>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// Collective: calls `part()` on each member, which may throw but may not communicate with others.
/// If it throws on some, `undo()` is called on the others, and all throw: a member that has thrown
/// the same again, the others what the first of those has thrown, with its rank. 1 all_reduce.
template <class Part, class Undo>
void do_together(const team& over, const std::string& what, Part part, Undo undo) {
  struct reason {
    bool no_room = false;
    std::string text;
  } mine;
  std::exception_ptr thrown;
  try {
    part();
  } catch (const rank_failure&) {
    throw;  // of another rank: this one ends for that
  } catch (const std::exception& e) {
    thrown = std::current_exception();
    mine = {dynamic_cast<const allocation_error*>(&e) != nullptr, e.what()};
  } catch (...) {
    thrown = std::current_exception();
    mine.text = "It threw an exception that is no std::exception.";
  }
  const rank_t nobody = over.size();
  rank_t first = all_reduce(thrown ? over.rank() : nobody, minimum(), over);
  if (first == nobody) return;
  if (!thrown) undo();
  bool no_room = broadcast(mine.no_room, first, over);
  std::string text = broadcast(mine.text, first, over);
  if (thrown) std::rethrow_exception(thrown);
  rank_t where = over.world_rank(first);
  if (no_room) raise<allocation_error>(what, ": rank ", where, " has no room for its part. ", text);
  raise(what, ": rank ", where, " could not do its part. ", text);
}

/// Collective: memory for `n` objects in this member's own segment (null where `n` is 0), and where
/// that of all members lies. All throw far::allocation_error if one member has no room. 1
/// all_reduce and 1 all_gather.
template <class T>
std::vector<ptr<T>> alloc_together(const team& over, const std::string& what, std::size_t n) {
  ptr<T> mine;
  do_together(
      over, what,
      [&] {
        if (n != 0) mine = alloc<T>(n);
      },
      [&] { dealloc(mine); });
  return all_gather(mine, over);
}

}  // namespace far::inline FARSIDE_BACKEND::detail
