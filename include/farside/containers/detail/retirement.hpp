// Reclamation: when far memory that other ranks may still use is freed.
//
// A structure first unlinks a block, by an atomic: from then on no rank finds it that does not know
// it already. It tells all members of its team that something was unlinked, and then retires the
// block here. A rank that knows the block may use it in operations, and in handlers and
// continuations, which also run while that rank waits inside a barrier. Each rank forgets what it
// knew when it leaves a barrier of the team.
//
//   rank X                                   rank R
//   unlinks a block, tells R, retires it
//   enters barrier k
//                                            inside barrier k a handler uses the block
//   leaves barrier k                         leaves barrier k, and forgets the block
//   enters barrier k + 1                     enters barrier k + 1: so it has left barrier k
//   leaves barrier k + 1, frees the block
//
// Invariant: a block is freed only after each member has left a barrier that X entered with the
// block retired. So no member knows it, and none uses it: an operation does not reach over the end
// of a barrier. One barrier would not do: X may leave it first, while R still serves inside it.
//
// What an asynchronous operation has begun may reach over barriers. Its gets may read freed memory
// then, and what they bring is thrown away (`stale_reads`); it never writes there.
#pragma once

#include <farside/backend/optional.hpp>
#include <farside/base/mutants.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// As long as it lives, gets that this rank begins may read memory that has been freed. The
/// operation that uses their bytes makes sure that they are those it has meant: by a checksum, or
/// because nothing has been freed.
template <class Link>
class stale_reads : heap_access<Link> {
 public:
  using heap_access<Link>::heap_access;
};
template <class Link>
stale_reads(Link&) -> stale_reads<Link>;

/// Blocks that one rank has unlinked. One thread at a time.
template <class Block>
class retirement {
 public:
  /// The block is unlinked, and all members have been told; or before_barrier() will ask.
  void add(Block block) { fresh_.push_back(std::move(block)); }

  /// Every member will have forgotten what is here now when it leaves the barrier that begins. What
  /// is not `unlinked(block)` yet stays.
  template <class Unlinked>
  void before_barrier(Unlinked unlinked) {
    const auto first =
        std::partition(fresh_.begin(), fresh_.end(), [&](const Block& b) { return !unlinked(b); });
    leaving_.insert(leaving_.end(), first, fresh_.end());
    fresh_.erase(first, fresh_.end());
  }
  void before_barrier() {
    before_barrier([](const Block&) { return true; });
  }
  /// Calls `free(block)` for what was here before the barrier that came before this one.
  template <class Free>
  void after_barrier(Free free) {
    if (FARSIDE_MUTANT(retired_for_one_barrier)) forgotten_.swap(leaving_);
    for (Block& block : std::exchange(forgotten_, {})) free(block);
    forgotten_.swap(leaving_);
  }
  /// For all of them: nobody else is there any more.
  template <class Free>
  void end(Free free) {
    for (auto* some : {&forgotten_, &leaving_, &fresh_})
      for (Block& block : std::exchange(*some, {})) free(block);
  }

 private:
  std::vector<Block> fresh_;      ///< retired since the last barrier began
  std::vector<Block> leaving_;    ///< retired before the barrier under way began
  std::vector<Block> forgotten_;  ///< unknown to ranks that have left the last barrier
};

}  // namespace far::inline FARSIDE_BACKEND::detail
