// How the simulated machine finds accesses to memory that is not allocated: see allocations.hpp.
//
// An operation is checked when its rank begins it, and again when it is performed, as others run
// between: a put lands, and a get reads, in the block that its rank meant, or the run ends. Once a
// rank has died or given up (a planned fault) the others free what they have as they notice it,
// and cannot agree on when: nothing is checked any more.
#pragma once

#include <farside/backend/sim/world.hpp>

namespace far::inline FARSIDE_BACKEND::detail::sim_backend {

/// What freed memory holds, for reads through ptr::local(); of large blocks the first
/// part only, so that memory nobody has touched stays untouched.
inline constexpr int freed_byte = 0xdf;
inline constexpr std::size_t most_filled = 65536;

inline const char* verb_of(const event& e) {
  switch (e.what) {
    case event::put:
      return e.change ? "adds to" : "puts";
    case event::get:
      return "reads";
    case event::atomic:
      return "changes";
    default:
      return "signals";
  }
}

inline void world::note_allocated(rank_t me, rank_t rank, std::size_t offset, std::size_t bytes) {
  note("rank %-4u allocates %zu B at rank %u +0x%zx", me, bytes, rank, offset);
  if (std::string why = blocks_.allocate(rank, offset, bytes, {me, steps_}); !why.empty())
    fail_run(why);
}

/// Nothing, or why there is no block to be freed. Where all schedules are tried, freeing is an
/// access to all of the block: it must not commute with what others do to it.
inline std::string world::note_freed(rank_t me, rank_t rank, std::size_t offset) {
  std::size_t bytes = blocks_.size_of(rank, offset);
  if (exploring()) step(me, {rank, offset, offset + bytes, true});
  std::string why = blocks_.free(rank, offset, {me, steps_});
  if (!why.empty()) return why;
  note("rank %-4u frees %zu B at rank %u +0x%zx", me, bytes, rank, offset);
  lift_veils(rank, offset, offset + bytes);
  std::memset(memory(rank, offset), freed_byte, std::min(bytes, most_filled));
  return "";
}

/// The generation of the block that a rank is about to use; -1 if that is not watched.
inline int world::enter_block(rank_t me, rank_t target, std::size_t offset, std::size_t bytes,
                              const char* does) {
  if (!blocks_.watches(offset, bytes) || ranks_[me].heap_access) return -1;
  int block = blocks_.at(target, offset);
  check_block(me, target, offset, bytes, does, block);
  return block;
}

inline void world::check_block(rank_t me, rank_t target, std::size_t offset, std::size_t bytes,
                               const char* does, int block) {
  if (block < 0 || dead_ >= 0) return;
  auto began = static_cast<allocated_blocks::generation>(block);
  if (blocks_.good(target, offset, bytes, began)) [[likely]]
    return;
  fail_run(
      text("rank ", me, " ", does, " ", bytes, " B at rank ", target, " ", hexadecimal(offset),
           ", ", blocks_.complaint(target, offset, bytes, began),
           ". Memory may be used from its allocation to far::dealloc, by ranks that know it "
           "is still there: all of them are done with it (far::barrier) before one frees it."));
}

inline void world::check_landing(const event& e) {
  if (e.block < 0 || dead_ >= 0) return;
  auto began = static_cast<allocated_blocks::generation>(e.block);
  if (blocks_.good(e.target, e.offset, e.bytes, began)) [[likely]]
    return;
  fail_run(text("#", e.number, " of rank ", e.origin, ", which ", verb_of(e), " ", e.bytes,
                " B at rank ", e.target, " ", hexadecimal(e.offset), " since step ", e.issued,
                ", lands at step ", steps_, " in memory ",
                blocks_.complaint(e.target, e.offset, e.bytes, began),
                ". Complete what is in flight (far::flush, or the wait for its future), and let "
                "the other ranks know, before the memory is freed."));
}

}  // namespace far::inline FARSIDE_BACKEND::detail::sim_backend
