// put, get, copy: moving trivially copyable objects between this rank and far memory.
//
// All operations are one-sided: the target takes no part.
#pragma once

#include <farside/core/access.hpp>
#include <farside/core/future.hpp>
#include <farside/core/ref.hpp>

#include <bit>
#include <cstring>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// Where the program calls the operation that follows: the simulator names it in its reports.
/// Nothing elsewhere. Places in the library itself say nothing to its users.
[[gnu::always_inline]] inline void note_place([[maybe_unused]] std::source_location at) {
#if defined(FARSIDE_USE_SIM)
  constexpr std::string_view here = std::source_location::current().file_name();
  constexpr std::size_t folder = here.rfind("core/");
  bool ours = std::string_view(at.file_name()).substr(0, folder) == here.substr(0, folder);
  sim_backend::next_place = {at.file_name(), ours ? 0 : at.line()};
#endif
}

}  // namespace detail

/// Reads one object. One-sided; complete on return; sees this rank's own earlier puts. 1 get.
template <class T>
[[gnu::always_inline]] inline std::remove_const_t<T> get(ptr<T> from, std::source_location at) {
  detail::note_place(at);
  using value = std::remove_const_t<T>;
  return detail::access(operation::get, from.rank(), sizeof(T),
                        [from](auto& link) __attribute__((always_inline)) {
                          detail::check_access(link, "get", from, 1);
                          struct alignas(T) bytes {
                            std::byte data[sizeof(T)];
                          } buffer;
                          link.get(from.rank(), detail::aligned_offset(from), &buffer, sizeof(T));
                          return std::bit_cast<value>(buffer);
                        });
}

/// Reads `n` objects to `to`. One-sided; complete on return. 1 get.
template <class T>
[[gnu::always_inline]] inline void get(ptr<T> from, std::remove_const_t<T>* to, std::size_t n,
                                       std::source_location at = std::source_location::current()) {
  detail::note_place(at);
  detail::access(operation::get, from.rank(), n * sizeof(T),
                 [from, to, n](auto& link) __attribute__((always_inline)) {
                   detail::check_access(link, "get", from, n);
                   link.get(from.rank(), detail::aligned_offset(from), to, n * sizeof(T));
                 });
}

/// Reads `n` objects. One-sided; complete on return. 1 get.
template <class T>
std::vector<std::remove_const_t<T>> get(ptr<T> from, std::size_t n,
                                        std::source_location at = std::source_location::current()) {
  detail::check_access(detail::here().link, "get", from, n);  // before so much memory is asked for
  std::vector<std::remove_const_t<T>> result(n);
  get(from, result.data(), n, at);
  return result;
}

/// Writes one object. One-sided; `value` may change on return; complete at the target after
/// flush or barrier, and not ordered with anything before. 1 put.
template <class T>
[[gnu::always_inline]] inline void put(ptr<T> to, const std::type_identity_t<T>& value,
                                       std::source_location at) {
  detail::note_place(at);
  static_assert(!std::is_const_v<T>,
                "far::put through a far::ptr<const T>: the target is read-only");
  auto write = [to](auto& link, const T& from) __attribute__((always_inline)) {
    detail::check_access(link, "put", to, 1);
    link.put(to.rank(), detail::aligned_offset(to), &from, sizeof(T));
  };
  // A copy stays in a register. With a reference the value is stored on the stack each time, and
  // such stores take the places of far ones in the CPU's queue: on smp they took 1.4 times as long.
  if constexpr (sizeof(T) <= 16 && std::is_copy_constructible_v<T>)
    detail::access(operation::put, to.rank(), sizeof(T),
                   [write, value](auto& link)
                       __attribute__((always_inline)) { write(link, value); });
  else
    detail::access(operation::put, to.rank(), sizeof(T),
                   [write, &value](auto& link)
                       __attribute__((always_inline)) { write(link, value); });
}

/// Writes `n` objects from `from`, which may be reused on return. 1 put.
template <class T>
[[gnu::always_inline]] inline void put(ptr<T> to, const std::type_identity_t<T>* from,
                                       std::size_t n,
                                       std::source_location at = std::source_location::current()) {
  detail::note_place(at);
  static_assert(!std::is_const_v<T>,
                "far::put through a far::ptr<const T>: the target is read-only");
  detail::access(operation::put, to.rank(), n * sizeof(T),
                 [to, from, n](auto& link) __attribute__((always_inline)) {
                   detail::check_access(link, "put", to, n);
                   link.put(to.rank(), detail::aligned_offset(to), from, n * sizeof(T));
                 });
}

template <class T>
void put(ptr<T> to, std::span<const std::type_identity_t<T>> from,
         std::source_location at = std::source_location::current()) {
  put(to, from.data(), from.size(), at);
}

/// Begins to read one object. 1 get, not waited for.
template <class T>
future<std::remove_const_t<T>> async_get(ptr<T> from) {
  using value = std::remove_const_t<T>;
  return detail::perform(operation::get, from.rank(), sizeof(T), [&](detail::context& c) {
    detail::check_access(c.link, "async_get", from, 1);
    return detail::in_flight<value>(c, [&](value& slot) {
      return c.link.async_get(from.rank(), from.offset(), &slot, sizeof(T));
    });
  });
}

/// Begins to read `n` objects to `to`, which must live until the future is ready. 1 get.
template <class T>
future<void> async_get(ptr<T> from, std::remove_const_t<T>* to, std::size_t n) {
  return detail::perform(operation::get, from.rank(), n * sizeof(T), [&](detail::context& c) {
    detail::check_access(c.link, "async_get", from, n);
    return detail::in_flight(c, c.link.async_get(from.rank(), from.offset(), to, n * sizeof(T)));
  });
}

/// Begins to write one object, of which a copy is kept. The future is ready when the network has
/// taken it; complete at the target after flush or barrier. 1 put.
template <class T>
future<void> async_put(ptr<T> to, const std::type_identity_t<T>& value) {
  put(to, value);  // the source may be reused on return: a small put is not worth a request
  return future<void>::ready();
}

/// Begins to write `n` objects from `from`, which must not change until the future is ready. 1 put.
template <class T>
future<void> async_put(ptr<T> to, const std::type_identity_t<T>* from, std::size_t n) {
  return detail::perform(operation::put, to.rank(), n * sizeof(T), [&](detail::context& c) {
    detail::check_access(c.link, "async_put", to, n);
    return detail::in_flight(c, c.link.async_put(to.rank(), to.offset(), from, n * sizeof(T)));
  });
}

/// Copies `n` objects from far memory to far memory, which may not overlap. One-sided; the source
/// has been read on return, the target is complete after flush or barrier.
/// 1 get + 1 put for each 4 MiB; 1 put if this process can load the source, 1 get if it can
/// store to the target.
template <class T>
void copy(ptr<T> from, ptr<std::remove_const_t<T>> to, std::size_t n) {
  if (const T* source = from.local()) return put(to, source, n);
  if (auto* target = to.local()) return get(from, target, n);
  std::size_t piece = std::max<std::size_t>(1, (std::size_t{4} << 20) / sizeof(T));
  std::vector<std::remove_const_t<T>> buffer(std::min(n, piece));
  for (std::size_t done = 0; done < n; done += piece) {
    std::size_t now = std::min(piece, n - done);
    get(from + done, buffer.data(), now);
    put(to + done, buffer.data(), now);
  }
}

/// Begins a copy. The source has been read when the future is ready. One-sided. 1 get + 1 put, not
/// waited for; 1 put if this process can load the source, 1 get if it can store to the target.
template <class T>
future<void> async_copy(ptr<T> from, ptr<std::remove_const_t<T>> to, std::size_t n) {
  if (const T* source = from.local()) return async_put(to, source, n);
  if (auto* target = to.local()) return async_get(from, target, n);
  auto buffer = std::make_shared<std::vector<std::remove_const_t<T>>>(n);
  return async_get(from, buffer->data(), n).then([buffer, to, n] { put(to, buffer->data(), n); });
}

/// Completes this rank's earlier puts to `rank`: all reads that follow see them. One-sided.
/// 1 flush.
[[gnu::always_inline]] inline void flush(rank_t rank) {
  detail::access(operation::flush, rank, 0, [rank](auto& link) __attribute__((always_inline)) {
    if constexpr (FARSIDE_CHECKED || !detail::guarded_by_pages<std::decay_t<decltype(link)>>)
      if (rank >= link.nprocs()) [[unlikely]]
        detail::raise("flush(", rank, "): there are only ", link.nprocs(), " ranks, 0 to ",
                      link.nprocs() - 1, ".");
    link.flush(rank);
  });
}

/// Completes this rank's earlier puts to all ranks. One-sided. 1 flush.
[[gnu::always_inline]] inline void flush() {
  detail::access(operation::flush, 0, 0,
                 [](auto& link) __attribute__((always_inline)) { link.flush(); });
}

namespace detail {

/// A put and a flush of its rank: what the operations of containers end with. Where a transport has
/// one way for both it waits once.
template <class T>
[[gnu::always_inline]] inline void put_through(ptr<T> to, const T* from, std::size_t n) {
  auto at_once = [&](auto& link) __attribute__((always_inline)) {
    if constexpr (puts_through<std::remove_cvref_t<decltype(link)>>) {
      call_marker while_waiting(fast.marks, operation::flush, to.rank());
      link.put_through(to.rank(), aligned_offset(to), from, n * sizeof(T));
      return true;
    }
    return false;
  };
  if (with_fast_link(at_once)) return;
  put(to, from, n);
  flush(to.rank());
}

}  // namespace detail

/// Lets the transport and everything in flight go on; runs continuations that have become
/// due, and serves messages. Local: begins no communication of its own.
inline void progress() { detail::here().progress(); }

/// One round of a loop in which a program waits for other ranks: progress(), a yield of
/// the core, and far::rank_failure once a rank has died. Local; no communication of its own.
inline void wait_round() { detail::here().wait_round(); }

}  // namespace far::inline FARSIDE_BACKEND
