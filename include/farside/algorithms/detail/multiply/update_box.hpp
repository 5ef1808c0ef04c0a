// Partial tiles on their way to the owners of the tiles that they belong to.
//
// A partial tile stays in the segment of the member that made it, its sender, until its owner has
// fetched it. The owner learns of it by a list: one word at the owner, its head, names the update
// that was pushed last, and each update names the one before it.
//
//   owner        head --> update 3 (of sender 7) --> update 2 (of sender 4) --> update 1 --> 0
//   update, in its sender's segment:   | next | state | tile | size ... | data ... |
//
//   sender                                         owner
//   room(bytes): allocates, waits if too much is out
//   writes header and data, flush
//   push: next = head; compare-and-swap of head    drain: swap head with 0, all of the list is its
//     ... until it succeeds                          get of header, get of data, adds it up
//   state == taken: frees the memory        <------  state = taken, by an atomic
//
// Owners take all there is, so that no word of a list changes while it is in one (no ABA), and a list
// is never full. What is bounded is memory: a sender has at most `limit` bytes out, or a single
// update. A sender that waits for room drains its own list meanwhile: all that wait do, so one of any
// circle of waiting members can always go on.
//
// Invariant: an update's memory is freed by its sender alone, after its owner has written `taken`,
// which is the owner's last access to it.
#pragma once

#include <farside/algorithms/detail/quiescence.hpp>
#include <farside/base/mutants.hpp>
#include <farside/containers/matrix_shape.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/memory.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <list>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class update_box {
 public:
  struct alignas(16) unit {
    std::byte bytes[16];
  };
  struct header {
    std::uint64_t next = 0;             ///< far pointer of the update that was pushed before
    std::uint64_t state = 0;            ///< 1: taken; by an atomic
    std::uint64_t row = 0, column = 0;  ///< of the tile
    std::uint64_t bytes = 0;            ///< of the data
    std::uint64_t nnz = 0, sorted = 0;  ///< of a sparse one
    std::uint64_t order = 0;            ///< its place among all of its tile, where that matters
  };
  static_assert(sizeof(header) % sizeof(unit) == 0);

  /// An update that is being written.
  struct outgoing {
    ptr<unit> where;
    std::size_t bytes = 0;
    std::size_t beside = 0;             ///< bytes of other memory that it names and keeps
    std::function<void()> let_go = {};  ///< gives that back, when the owner has taken it
    std::byte* data() const { return reinterpret_cast<std::byte*>(where.local()) + sizeof(header); }
  };

  /// Collective over `over`. `limit` bytes may be out at a time.
  update_box(const team& over, std::size_t limit) : over_(over), limit_(limit), rest_(over) {
    try {
      heads_ = alloc_together<std::uint64_t>(over, "multiply: the list of updates", 1);
    } catch (const allocation_error&) {
      rest_.release();  // no member has begun to use it
      throw;
    }
    put(heads_[over.rank()], std::uint64_t{0});
    flush(heads_[over.rank()].rank());
    barrier(over);
  }
  /// Between two synchronisations, when nothing is out.
  void release() {
    dealloc(heads_[over_.rank()]);
    rest_.release();
  }

  /// Memory for an update of `bytes`. Waits while too much is out; `drain` is called meanwhile, and
  /// takes what has come here. Throws far::allocation_error if even a single one has no room.
  template <class Drain>
  outgoing room(std::size_t bytes, Drain drain) {
    return room(bytes, 0, [] { return std::function<void()>(); }, drain);
  }
  /// Likewise, and `beside` bytes of other memory, which take() takes: what it returns gives them
  /// back.
  template <class Take, class Drain>
  outgoing room(std::size_t bytes, std::size_t beside, Take take, Drain drain) {
    reap();
    while (out_bytes_ != 0 && out_bytes_ + bytes + beside > limit_) wait_a_round(drain);
    while (true) {
      try {
        outgoing made{alloc<unit>(units(bytes)), bytes, beside};
        try {
          made.let_go = take();
        } catch (...) {
          dealloc(made.where);
          throw;
        }
        return made;
      } catch (const allocation_error&) {
        if (out_.empty()) throw;
      }
      wait_a_round(drain);  // what is out gives room back
    }
  }
  void give_up(const outgoing& unused) {
    dealloc(unused.where);
    if (unused.let_go) unused.let_go();
  }

  /// Sends an update that has been written to a member. 1 flush, 1 atomic, and a flush and an atomic
  /// more for each member that pushes there at the same moment. Nothing is sent if it throws.
  void push(rank_t to, const outgoing& what, header with) {
    auto* mine = reinterpret_cast<header*>(what.where.local());
    with.bytes = what.bytes;
    with.next = 0;  // most often the owner has taken what was there before
    *mine = with;
    if (FARSIDE_MUTANT(update_pushed_before_written)) mine->bytes = 0;
    out_.push_back(what);  // first, as it may throw, and what is sent must be counted
    while (true) {
      flush(what.where.rank());
      const std::uint64_t seen = compare_swap(heads_[to], mine->next, what.where.raw());
      if (seen == mine->next || FARSIDE_MUTANT(update_lost_race_taken_for_won)) break;
      mine->next = seen;
    }
    if (FARSIDE_MUTANT(update_pushed_before_written)) {
      here().wait_round();
      mine->bytes = what.bytes;
    }
    out_bytes_ += what.bytes + what.beside;
    most_out_ = std::max(most_out_, out_bytes_);
    ++sent_;
  }

  /// Takes what has come here: take(header, data) for each, in the order in which they were pushed.
  /// Waits for no other member. Coherent memory: a load if there is nothing; else 1 atomic, and for
  /// each update 1 get and 1 atomic (2 gets where the data is long).
  template <class Take>
  void drain(Take take) {
    context& c = here();
    ptr<std::uint64_t> head = heads_[over_.rank()];
    if (load_own(c, head) == 0) return;
    std::vector<std::pair<ptr<unit>, header>> list;
    std::uint64_t first = FARSIDE_MUTANT(update_list_read_then_cleared)
                              ? atomic_load(head)
                              : swap(head, std::uint64_t{0});
    if (FARSIDE_MUTANT(update_list_read_then_cleared)) atomic_store(head, std::uint64_t{0});
    for (auto at = ptr<unit>::from_raw(first); at;) {
      header found = get(pointer_cast<header>(at));
      list.emplace_back(at, found);
      at = ptr<unit>::from_raw(found.next);
    }
    for (auto one = list.rbegin(); one != list.rend(); ++one) {
      const auto& [at, found] = *one;
      const ptr<unit> data = at + static_cast<std::ptrdiff_t>(sizeof(header) / sizeof(unit));
      const std::size_t n = units(found.bytes) - sizeof(header) / sizeof(unit);
      auto let_go = [&] { atomic_store(pointer_cast<std::uint64_t>(at) + 1, std::uint64_t{1}); };
      if (FARSIDE_MUTANT(update_taken_too_early)) let_go();
      if (const unit* here_it_is = data.local()) {
        note(c, operation::get, data.rank(), n * sizeof(unit), false);
        take(found, reinterpret_cast<const std::byte*>(here_it_is));
      } else {
        fetched_.resize(std::max(fetched_.size(), n));
        get(data, fetched_.data(), n);
        take(found, reinterpret_cast<const std::byte*>(fetched_.data()));
      }
      let_go();
      ++handled_;
    }
  }

  /// One look at whether all members have come to rest: nothing left to do, and nothing under way.
  /// True once, on every member. `idle`: this member will push only what it is handed.
  bool at_rest(bool idle) {
    reap();
    return rest_.step(idle && out_.empty(), sent_, handled_);
  }

  std::size_t most_out() const { return most_out_; }

 private:
  static std::size_t units(std::size_t bytes) {
    return (sizeof(header) + bytes + sizeof(unit) - 1) / sizeof(unit);
  }
  /// Frees updates that their owners have taken.
  void reap() {
    context& c = here();
    std::erase_if(out_, [&](const outgoing& one) {
      if (load_own(c, pointer_cast<std::uint64_t>(one.where) + 1) == 0 &&
          !FARSIDE_MUTANT(update_freed_before_taken))
        return false;
      out_bytes_ -= one.bytes + one.beside;
      dealloc(one.where);
      if (one.let_go) one.let_go();
      return true;
    });
  }
  template <class Drain>
  void wait_a_round(Drain drain) {
    if (!FARSIDE_MUTANT(update_waits_without_draining)) drain();
    here().wait_round();
    reap();
  }

  team over_;
  std::size_t limit_;
  quiescence rest_;
  std::vector<ptr<std::uint64_t>> heads_;
  std::vector<outgoing> out_;
  std::size_t out_bytes_ = 0, most_out_ = 0;
  std::uint64_t sent_ = 0, handled_ = 0;
  std::vector<unit> fetched_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
