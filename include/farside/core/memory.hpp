// Segment memory: a rank's own (alloc), any rank's (alloc_on), and giving either back.
#pragma once

#include <farside/core/context.hpp>
#include <farside/core/rma.hpp>
#include <farside/detail/mutants.hpp>

#include <memory>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// Takes back what other ranks have freed of this rank's own memory. 1 local atomic.
inline void collect_freed(context& c) {
  rank_t me = c.link.rank();
  auto first = c.link.template atomic_load<std::uint64_t>(me, freed_list);
  if (first == 0) return;
  auto next = c.link.template fetch_op<atomic_op::swap>(me, freed_list, std::uint64_t{0});
  if (FARSIDE_MUTANT(freed_list_taken_in_two_steps)) next = first;
  while (next != 0) {
    std::size_t block = next;
    c.link.get(me, block, &next, sizeof next);
    if (!c.heap.deallocate(block))
      raise("rank ", me, ": another rank has freed ", ptr<std::byte>(me, block),
            ", where no allocation begins. It was freed twice, or the pointer is not one that "
            "far::alloc or far::make returned.");
  }
}

[[noreturn, gnu::cold]] inline void raise_full(context& c, rank_t rank, std::size_t bytes,
                                               std::size_t free, const char* part) {
  raise<allocation_error>("rank ", c.link.rank(), ": no room for ", bytes, " bytes (",
                          human_size(static_cast<double>(bytes)), ") in the ", part,
                          " part of the segment of rank ", rank, ": at most ", free, " bytes (",
                          human_size(static_cast<double>(free)),
                          ") are free in one piece, of a segment of ",
                          human_size(static_cast<double>(c.link.segment_size())),
                          ". Raise it with 'farside run --segment SIZE' or FARSIDE_SEGMENT=SIZE (a "
                          "quarter of a segment "
                          "is the remote part, the rest the local part), or use more ranks.");
}

/// Whether a simulated machine lets this allocation fail.
template <class Link>
bool planned_failure(Link& link) {
  if constexpr (requires { link.machine(); })
    return link.machine().allocation_fails();
  else
    return false;
}

inline std::size_t local_allocate(context& c, std::size_t bytes, std::size_t alignment) {
  std::lock_guard lock(c.mutex);
  collect_freed(c);
  if (!planned_failure(c.link))
    if (auto offset = c.heap.allocate(bytes, alignment)) return *offset;
  raise_full(c, c.link.rank(), bytes, c.heap.largest_free(), "local");
}

template <class T>
std::size_t bytes_for(std::size_t n) {
  if (n > max_segment / sizeof(T)) return max_segment;  // never fits; avoids the overflow
  return n * sizeof(T);
}

}  // namespace detail

/// Memory for `n` objects in this rank's own segment, uninitialised. Not collective; no
/// communication. Throws far::allocation_error if there is no room.
template <class T>
ptr<T> alloc(std::size_t n = 1) {
  detail::require_transferable<T>();
  std::size_t bytes = detail::bytes_for<T>(n);
  detail::context& c = detail::here();
  return detail::perform(operation::allocation, c.link.rank(), bytes, [&](detail::context&) {
    return ptr<T>(c.link.rank(), detail::local_allocate(c, bytes, alignof(T)));
  });
}

/// One object in this rank's own segment, constructed and visible to all.
template <class T, class... Args>
ptr<T> make(Args&&... args) {
  ptr<T> result = alloc<T>(1);
  detail::context& c = detail::here();
  const T value(std::forward<Args>(args)...);
  c.link.put(result.rank(), result.offset(), &value, sizeof(T));
  c.link.flush(result.rank());
  return result;
}

/// Memory for `n` objects in the segment of any rank, uninitialised. One-sided: the owner's CPU
/// takes no part. 4 atomics (detail/remote_heap.hpp). Throws far::allocation_error if that rank's
/// region for such allocations is full.
template <class T>
ptr<T> alloc_on(rank_t rank, std::size_t n = 1) {
  detail::require_transferable<T>();
  static_assert(
      alignof(T) <= detail::remote_heap::header,
      "far::alloc_on aligns to 16 bytes: use far::alloc on the owner for larger alignment");
  std::size_t bytes = detail::bytes_for<T>(n);
  return detail::perform(operation::allocation, rank, bytes, [&](detail::context& c) {
    if (rank >= c.link.nprocs())
      detail::raise("alloc_on(", rank, "): there are only ", c.link.nprocs(), " ranks, 0 to ",
                    c.link.nprocs() - 1, ".");
    if (!detail::planned_failure(c.link))
      if (auto payload = c.far_heap.allocate(c.link, rank, bytes)) return ptr<T>(rank, *payload);
    detail::raise_full(c, rank, bytes, c.far_heap.untouched(c.link, rank), "remote");
  });
}

/// Gives memory back, from any rank, whoever allocated it. Null is allowed. One-sided.
/// Own memory: no communication. Another rank's, from alloc: 1 put, 1 flush, 2 atomics, and its
/// owner finds it at its next allocation. From alloc_on: 4 atomics.
template <class T>
void dealloc(ptr<T> p) {
  if (!p) return;
  detail::perform(operation::allocation, p.rank(), 0, [&](detail::context& c) {
    detail::check_access(c.link, "dealloc", p, 1);
    bool good = true;
    if (c.far_heap.contains(p.offset())) {
      good = c.far_heap.deallocate(c.link, p.rank(), p.offset());
    } else if (p.rank() == c.link.rank()) {
      std::lock_guard lock(c.mutex);
      good = c.heap.deallocate(p.offset());
    } else {
      // Pushed on the owner's list: link first, visible before the head names the block.
      auto head = c.link.template atomic_load<std::uint64_t>(p.rank(), detail::freed_list);
      for (;;) {
        c.link.put(p.rank(), p.offset(), &head, sizeof head);
        if (!FARSIDE_MUTANT(freed_by_others_unflushed)) c.link.flush(p.rank());
        auto seen = c.link.compare_swap(p.rank(), detail::freed_list, head,
                                        static_cast<std::uint64_t>(p.offset()));
        if (seen == head) break;
        head = seen;
      }
    }
    if (!good)
      detail::raise("rank ", c.link.rank(), ": dealloc(", p,
                    "): no allocation begins there. It was freed already, or the pointer is not "
                    "one that far::alloc, far::make or far::alloc_on returned.");
  });
}

/// A standard allocator of segment memory: a std::vector with it is a good target for gets.
template <class T>
struct allocator {
  using value_type = T;
  allocator() = default;
  template <class U>
  allocator(const allocator<U>&) {}

  T* allocate(std::size_t n) {
    detail::context& c = detail::here();
    std::size_t offset = detail::local_allocate(c, detail::bytes_for<T>(n), alignof(T));
    return static_cast<T*>(c.link.address(c.link.rank(), offset));
  }
  void deallocate(T* at, std::size_t) {
    detail::context& c = detail::here();
    std::lock_guard lock(c.mutex);
    c.heap.deallocate(static_cast<std::size_t>(
        reinterpret_cast<char*>(at) - static_cast<char*>(c.link.address(c.link.rank(), 0))));
  }
  friend bool operator==(allocator, allocator) { return true; }
};

/// The far pointer of an address in this rank's own segment; null if it is not in it.
template <class T>
ptr<T> to_far(T* at) {
  detail::context& c = detail::here();
  auto* base = static_cast<const char*>(c.link.address(c.link.rank(), 0));
  auto* here = reinterpret_cast<const char*>(at);
  if (here < base || here >= base + c.link.segment_size()) return nullptr;
  return ptr<T>(c.link.rank(), static_cast<std::size_t>(here - base));
}

}  // namespace far::inline FARSIDE_BACKEND
