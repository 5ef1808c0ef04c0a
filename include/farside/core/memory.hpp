// Segment memory: a rank's own (alloc), any rank's (alloc_on), and giving either back.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/access.hpp>
#include <farside/core/rma.hpp>

#include <algorithm>
#include <memory>
#include <optional>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// When a sixteenth of the heap, and at least 64 KiB, is free at its end, that part becomes untouched
/// memory (boundary.hpp), which far::alloc_on can use too: 2 atomics on own memory.
inline void give_back_end(context& c) {
  const boundary& split = c.far_heap.split();
  std::size_t spare = c.heap.free_at_end() / split.unit() * split.unit();
  if (spare < std::max<std::size_t>(65536, c.heap.size() / 16)) return;
  c.link.flush(c.link.rank());  // this rank's stores there come before those of the next owner
  split.lower_top(c.link, spare);
  c.heap.shrink(spare);
}

/// Takes a block back into this rank's own heap; false if there is no such block.
inline bool local_deallocate(context& c, std::size_t offset) {
  if (!c.heap.deallocate(offset)) return false;
  c.sites.remove(offset);
  give_back_end(c);
  return true;
}

/// Takes back what other ranks have freed of this rank's own memory. 1 local atomic.
inline void collect_freed(context& c) {
  rank_t me = c.link.rank();
  auto first = c.link.template atomic_load<std::uint64_t>(me, freed_list);
  if (first == 0) return;
  auto next = c.link.template fetch_op<atomic_op::swap>(me, freed_list, std::uint64_t{0});
  if (FARSIDE_MUTANT(freed_list_taken_in_two_steps)) next = first;
  while (next != 0) {
    std::size_t block = next;
    {
      heap_access to_link(c.link);
      c.link.get(me, block, &next, sizeof next);
    }
    if (!local_deallocate(c, block))
      raise("rank ", me, ": another rank has freed ", ptr<std::byte>(me, block),
            ", where no allocation begins. It was freed twice, or the pointer is not one that "
            "far::alloc or far::make returned.");
  }
}

/// Lets this rank's own heap grow, so that such a block fits; false if the segment is full.
inline bool extend_heap(context& c, std::size_t bytes, std::size_t alignment) {
  const boundary& split = c.far_heap.split();
  std::size_t least = c.heap.shortage(bytes, alignment);
  if (least > split.capacity()) return false;
  std::size_t welcome = std::max<std::size_t>(65536, c.heap.size() / 32);
  std::size_t more = split.raise_top(c.link, least, welcome);
  if (more == 0) {
    c.far_heap.join(c.link, c.link.rank(), [&] { c.quiet_wait_round(); });
    more = split.raise_top(c.link, least, welcome);
  }
  if (more == 0) return false;
  c.link.flush(c.link.rank());  // stores of its last owner come before this rank's
  c.heap.extend(more);
  return true;
}

[[noreturn, gnu::cold]] inline void raise_full(context& c, const char* what, rank_t rank,
                                               std::size_t bytes, std::size_t free) {
  raise<allocation_error>(
      "rank ", c.link.rank(), ": no room for ", bytes, " bytes (",
      human_size(static_cast<double>(bytes)), ") in the segment of rank ", rank, ": ", what,
      " finds at most ", free, " bytes (", human_size(static_cast<double>(free)),
      ") free in one piece, of a segment of ",
      human_size(static_cast<double>(c.link.segment_size())),
      ", which all of far::alloc and far::alloc_on share. Raise it with 'farside run --segment "
      "SIZE' or FARSIDE_SEGMENT=SIZE, free what is not needed any more, or use more ranks.");
}

/// Whether a simulated machine lets this allocation fail.
template <class Link>
bool planned_failure(Link& link) {
  if constexpr (simulates_machine<Link>)
    return link.machine().allocation_fails();
  else
    return false;
}

/// Gives back a block of this rank's own heap, which local_allocate has given.
inline bool free_own(context& c, std::size_t offset) {
  return note_freed(c.link, c.link.rank(), offset).empty() && local_deallocate(c, offset);
}

/// Gives back the end of a block that far::alloc has given this rank, all but its first `bytes`. A block
/// of the other heap, or of a back end that watches memory, stays as it is.
inline void trim_own(context& c, std::size_t offset, std::size_t bytes) {
  if (watches_memory<transport> || remote_heap::is_payload(offset)) return;
  std::lock_guard lock(c.mutex);
  if (c.heap.trim(offset, bytes)) give_back_end(c);
}

/// Memory of the local heap. If the heap has none, and cannot grow, it is what `otherwise` gives.
template <class Otherwise>
std::size_t local_allocate(context& c, std::size_t bytes, std::size_t alignment,
                           Otherwise otherwise) {
  std::lock_guard lock(c.mutex);
  collect_freed(c);
  rank_t me = c.link.rank();
  if (!planned_failure(c.link)) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (auto offset = c.heap.allocate(bytes, alignment)) {
        note_allocated(c.link, me, *offset, bytes);
        return *offset;
      }
      if (!extend_heap(c, bytes, alignment)) break;
    }
    if (std::optional<std::size_t> offset = otherwise()) {
      note_allocated(c.link, me, *offset, bytes);
      return *offset;
    }
  }
  const boundary& split = c.far_heap.split();
  std::size_t untouched = split.untouched(c.link, c.link.rank()) / split.unit() * split.unit();
  raise_full(c, "far::alloc", c.link.rank(), bytes,
             std::max(c.heap.largest_free(), c.heap.free_at_end() + untouched));
}

inline std::size_t local_allocate(context& c, std::size_t bytes, std::size_t alignment) {
  return local_allocate(c, bytes, alignment, [] { return std::nullopt; });
}

/// Throws if so many of `each` bytes, on `members` segments in equal parts, are more than segments
/// of any size can hold. Callers check a user's number so before they compute with it, as it could
/// wrap. Collectives check it on all members, which all give the same number and so all throw.
inline void require_possible(const std::string& what, std::uint64_t n, std::size_t each,
                             std::uint64_t members = 1) {
  if (n / members < max_segment / each) [[likely]]
    return;
  raise<allocation_error>(
      what, ": no room for ", n, " of ", each, " bytes each: a segment has less than ", max_segment,
      " bytes (", human_size(static_cast<double>(max_segment)), "), and there ",
      members == 1 ? "is " : "are ", members, ". Has a negative number become such a large one?");
}

template <class T>
std::size_t bytes_for(const char* what, std::size_t n) {
  if (n >= max_segment / sizeof(T)) [[unlikely]]
    require_possible(what, n, sizeof(T));
  return n * sizeof(T);
}

}  // namespace detail

/// Memory for `n` objects in this rank's own segment, uninitialised. Not collective; no
/// communication with others: 1 atomic on own memory, 2 more when its heap has to grow (by a
/// thirty-second at least, if there is plenty). When it cannot, as far::alloc_on has taken the
/// rest, what was freed of that is used. Throws far::allocation_error if there is no room.
template <class T>
ptr<T> alloc(std::size_t n = 1,
             detail::allocation_site where = detail::allocation_site::current()) {
  detail::require_transferable<T>();
  std::size_t bytes = detail::bytes_for<T>("far::alloc", n);
  detail::context& c = detail::here();
  return detail::perform(operation::allocation, c.link.rank(), bytes, [&](detail::context&) {
    auto freed_elsewhere = [&]() -> std::optional<std::size_t> {
      if constexpr (alignof(T) > detail::remote_heap::header) return std::nullopt;
      return c.far_heap.allocate(c.link, c.link.rank(), bytes, [&] { c.quiet_wait_round(); });
    };
    std::size_t offset = detail::local_allocate(c, bytes, alignof(T), freed_elsewhere);
    if (FARSIDE_CHECKED && !detail::remote_heap::is_payload(offset)) {
      std::lock_guard lock(c.mutex);
      c.sites.add(offset, bytes, where);
    }
    return ptr<T>(c.link.rank(), offset);
  });
}

/// One object in this rank's own segment, constructed and visible to all. Local; no communication.
template <class T, class... Args>
ptr<T> make(Args&&... args) {
  ptr<T> result = alloc<T>(1, detail::allocation_site::of("far::make"));
  detail::context& c = detail::here();
  const T value(std::forward<Args>(args)...);
  c.link.put(result.rank(), result.offset(), &value, sizeof(T));
  c.link.flush(result.rank());
  return result;
}

/// Memory for `n` objects in the segment of any rank, uninitialised. One-sided: the owner's CPU
/// takes no part. 4 atomics, or 3 and a get; for 64 KiB and more sometimes 5. Many more when the
/// segment is nearly full and free blocks must be cut or joined, and then ranks wait for each other
/// (core/detail/heap/remote_heap.hpp). Throws far::allocation_error if there is no room.
template <class T>
ptr<T> alloc_on(rank_t rank, std::size_t n = 1) {
  detail::require_transferable<T>();
  static_assert(
      alignof(T) <= detail::remote_heap::header,
      "far::alloc_on aligns to 16 bytes: use far::alloc on the owner for larger alignment");
  std::size_t bytes = detail::bytes_for<T>("far::alloc_on", n);
  return detail::perform(operation::allocation, rank, bytes, [&](detail::context& c) {
    if (rank >= c.link.nprocs())
      detail::raise("alloc_on(", rank, "): there are only ", c.link.nprocs(), " ranks, 0 to ",
                    c.link.nprocs() - 1, ".");
    if (!detail::planned_failure(c.link))
      if (auto payload = c.far_heap.allocate(c.link, rank, bytes, [&] { c.quiet_wait_round(); })) {
        detail::note_allocated(c.link, rank, *payload, bytes);
        return ptr<T>(rank, *payload);
      }
    detail::raise_full(c, "far::alloc_on", rank, bytes, c.far_heap.largest(c.link, rank));
  });
}

/// Gives memory back, from any rank, also what another rank allocated. Null is allowed. One-sided.
/// This rank's own puts to it are completed first. Which kind of block it is can be told from its
/// address. Own memory: no communication. Another rank's, from alloc: 1 put, 2 flushes, 2 atomics,
/// and its owner finds it at its next allocation. From alloc_on: 1 flush, 4 atomics, for 64 KiB and
/// more 3 or 5.
template <class T>
void dealloc(ptr<T> p) {
  if (!p) return;
  detail::perform(operation::allocation, p.rank(), 0, [&](detail::context& c) {
    detail::check_access(c.link, "dealloc", p, 1);
    c.link.flush(p.rank());  // also before a link is put where the caller's last put may go
    std::string why = detail::note_freed(c.link, p.rank(), p.offset());
    bool good = why.empty();
    if (!good) {
      why = text(" (", why, ")");
    } else if (detail::remote_heap::is_payload(p.offset())) {
      good = c.far_heap.deallocate(c.link, p.rank(), p.offset());
    } else if (p.rank() == c.link.rank()) {
      std::lock_guard lock(c.mutex);
      good = detail::local_deallocate(c, p.offset());
    } else if (p.offset() % detail::local_heap::unit != 0) {
      good = false;
    } else {
      // Pushed on the owner's list: link first, visible before the head names the block.
      auto head = c.link.template atomic_load<std::uint64_t>(p.rank(), detail::freed_list);
      for (;;) {
        detail::heap_access to_link(c.link);
        c.link.put(p.rank(), p.offset(), &head, sizeof head);
        if (!FARSIDE_MUTANT(freed_by_others_unflushed)) c.link.flush(p.rank());
        auto seen = c.link.compare_swap(p.rank(), detail::freed_list, head,
                                        static_cast<std::uint64_t>(p.offset()));
        if (seen == head) break;
        head = seen;
      }
    }
    if (!good)
      detail::raise("rank ", c.link.rank(), ": dealloc(", p, "): no allocation begins there", why,
                    ". It was freed already, or the pointer is not "
                    "one that far::alloc, far::make or far::alloc_on returned.");
  });
}

/// A standard allocator of segment memory: a std::vector with it is a good target for gets.
template <class T>
struct allocator {
  using value_type = T;
  /// All allocators are equal. Local; no communication.
  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) {}

  /// Memory of this rank's own segment. Local; no communication. Throws far::allocation_error.
  T* allocate(std::size_t n) {
    detail::context& c = detail::here();
    std::size_t offset =
        detail::local_allocate(c, detail::bytes_for<T>("far::allocator", n), alignof(T));
    return static_cast<T*>(c.link.address(c.link.rank(), offset));
  }
  /// Gives it back. Local; no communication.
  void deallocate(T* at, std::size_t) {
    detail::context& c = detail::here();
    std::lock_guard lock(c.mutex);
    detail::free_own(
        c, static_cast<std::size_t>(reinterpret_cast<char*>(at) -
                                    static_cast<char*>(c.link.address(c.link.rank(), 0))));
  }
  friend bool operator==(allocator, allocator) { return true; }
};

/// The far pointer of an address in this rank's own segment; null if it is not in it. Local; no
/// communication.
template <class T>
ptr<T> to_far(T* at) {
  detail::context& c = detail::here();
  auto* base = static_cast<const char*>(c.link.address(c.link.rank(), 0));
  auto* here = reinterpret_cast<const char*>(at);
  if (here < base || here >= base + c.link.segment_size()) return nullptr;
  return ptr<T>(c.link.rank(), static_cast<std::size_t>(here - base));
}

}  // namespace far::inline FARSIDE_BACKEND
