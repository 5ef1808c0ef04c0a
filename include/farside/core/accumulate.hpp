// accumulate: to[i] += scale * from[i] in far memory, without reading it first.
//
//   far::accumulate(fock + row, block.data(), n, 0.5);
//
// For integers of 32 and 64 bits (which wrap around), float, double, and std::complex of these.
//
// Atomicity. Additions to an element by accumulates of its type, of any ranks, are all there in the
// end, in some order; of a complex number, the real and the imaginary part each. Integers can be
// changed by far atomics at the same time, too. A get that overlaps an accumulate sees each aligned
// word before or after it (the trait `racy_get`). Anything else at the same time, a put or an
// accumulate of another type, leaves anything.
//
// Order. An accumulate is a put that adds: the source may be reused on return; it is complete at
// the target after flush or barrier, and this rank's own gets see it at once. It is not ordered
// with this rank's earlier puts to the same elements: flush between. Sums of floating point depend
// on the order in which they were made, as always.
//
// Cost: 1 put, also for many elements, where the transport can add: shared memory (integers by a
// CPU atomic each, floating point by a plain loop under a lock of each 16 KiB, about as fast as a
// copy), MPI's own accumulate, servers of a job by messages, OpenSHMEM for integers. Elsewhere
// (OpenSHMEM for floating point, MPI's strict mode) n compare-and-swaps and a get, 64 in flight
// together, of which those are repeated that lost a race, and it is complete on return.
//
// All are one-sided: the target takes no part.
#pragma once

#include <farside/backend/shared/add_in_place.hpp>
#include <farside/base/mutants.hpp>
#include <farside/core/access.hpp>
#include <farside/core/future.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// std::complex, told by its looks: its header would be a tenth of all that a program compiles.
template <class T>
concept complex_number = requires(const T& z) {
  z.real();
  z.imag();
  requires component<typename T::value_type>;
} && sizeof(T) == 2 * sizeof(typename T::value_type);

template <class T>
struct components {
  using type = void;
};
template <atomic_word T>
struct components<T> {
  using type = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
};
template <std::floating_point T>
  requires component<T>
struct components<T> {
  using type = T;
};
template <class T>
  requires complex_number<T>
struct components<T> {
  using type = typename T::value_type;
};

/// What an element of type T is made of.
template <class T>
using component_of = typename components<T>::type;

template <class T>
constexpr void require_accumulable() {
  static_assert(!std::is_const_v<T>,
                "far::accumulate through a far::ptr<const T>: the target is read-only");
  static_assert(!std::is_void_v<component_of<std::remove_const_t<T>>>,
                "far::accumulate adds integers of 32 or 64 bits, float, double, and std::complex "
                "of float or double. For other types use a far::mutex around get and put.");
}

/// Whether the transport adds such components by itself.
template <component C, class Link>
bool adds_natively(const Link& link) {
  if constexpr (accumulates<Link, C>)
    return link.template accumulates<C>();
  else
    return false;
}

/// Waits until the rest of an accumulate may be tried again: another rank, perhaps one that has died
/// meanwhile, adds to the same place. Runs no handlers, so that nothing overtakes what is left.
[[gnu::cold, gnu::noinline]] inline void await_sums(context& c, rank_t holder) {
  wait_marker note(c, job::waiting::sums, holder < c.link.nprocs() ? holder : job::no_rank);
  c.quiet_wait_round();
}

/// `link`: the back end or a fast link. It adds natively.
template <class Link, component C>
void add_natively(Link& link, rank_t rank, std::size_t offset, const C* from, std::size_t n) {
  if constexpr (accumulates<Link, C>) {
    context& c = here();
    for (;;) {
      accumulated now = link.accumulate(rank, offset, from, n, c.link.rank());
      if (now.elements == n || FARSIDE_MUTANT(accumulate_rest_forgotten)) [[likely]]
        return;
      from += now.elements, n -= now.elements, offset += now.elements * sizeof(C);
      await_sums(c, now.holder);
    }
  }
}

template <class Link, component C>
typename Link::request begin_to_add(Link& link, rank_t rank, std::size_t offset, const C* from,
                                    std::size_t n) {
  if constexpr (starts_accumulates<Link, C>)
    if (!link.coherent()) return link.async_accumulate(rank, offset, from, n);
  add_natively(link, rank, offset, from, n);
  return {};
}

/// One batch of add_by_swaps. An addition that lost a race learns what it should have expected.
template <component C>
void add_batch(context& c, rank_t rank, std::size_t offset, const C* from, std::size_t n) {
  constexpr std::size_t most = 64;
  using word = word_for<C>;
  word seen[most];
  transport::request requests[most];
  auto begin = [&](std::size_t i, auto&& start) {
    requests[i] = perform(operation::atomic, rank, sizeof(word),
                          [&](context&) { return start(offset + i * sizeof(word)); });
  };
  auto finish = [&] {
    count_wait(c);
    for (std::size_t i = 0; i < n; ++i) requests[i].wait();
  };
  if constexpr (std::integral<C>) {
    for (std::size_t i = 0; i < n; ++i)
      begin(i, [&](std::size_t at) {
        return c.link.template async_fetch_op<atomic_op::add>(rank, at, from[i], seen[i]);
      });
    finish();
  } else {
    word expected[most];
    perform(operation::get, rank, n * sizeof(word),
            [&](context&) { c.link.get(rank, offset, expected, n * sizeof(word)); });
    count_wait(c);
    bool done[most] = {};
    for (std::size_t left = n; left != 0;) {
      for (std::size_t i = 0; i < n; ++i)
        if (!done[i])
          begin(i, [&](std::size_t at) {
            return c.link.async_compare_swap(rank, at, expected[i], added(expected[i], from[i]),
                                             seen[i]);
          });
      finish();
      for (std::size_t i = 0; i < n; ++i) {
        if (done[i]) continue;
        done[i] = seen[i] == expected[i] || FARSIDE_MUTANT(accumulate_lost_race_taken_for_won);
        left -= done[i];
        expected[i] = seen[i];
      }
    }
  }
}

/// Where the transport cannot add. Complete on return. What the get reads need not be true: it is
/// only what the compare-and-swaps try first.
template <component C>
void add_by_swaps(context& c, rank_t rank, std::size_t offset, const C* from, std::size_t n) {
  constexpr std::size_t most = 64;
  for (std::size_t i = 0; i < n; i += most)
    add_batch(c, rank, offset + i * sizeof(C), from + i, std::min(most, n - i));
}

/// Begins to add `n` elements, unscaled; they must not change until the request is complete.
template <class T>
transport::request begin_accumulate(context& c, ptr<T> to, const T* from, std::size_t n) {
  using C = component_of<T>;
  auto* addends = reinterpret_cast<const C*>(from);  // also of std::complex, as the standard says
  std::size_t count = n * (sizeof(T) / sizeof(C));
  check_access(c.link, "accumulate", to, n);
  if (adds_natively<C>(c.link))
    return perform(operation::put, to.rank(), n * sizeof(T), [&](context&) {
      return begin_to_add(c.link, to.rank(), to.offset(), addends, count);
    });
  add_by_swaps(c, to.rank(), to.offset(), addends, count);
  return {};
}

/// Adds `n` elements, unscaled.
template <class T>
void accumulate_plain(ptr<T> to, const T* from, std::size_t n) {
  using C = component_of<T>;
  auto* addends = reinterpret_cast<const C*>(from);
  std::size_t count = n * (sizeof(T) / sizeof(C));
  context& c = here();
  if (!adds_natively<C>(c.link)) {
    check_access(c.link, "accumulate", to, n);
    return add_by_swaps(c, to.rank(), to.offset(), addends, count);
  }
  access(operation::put, to.rank(), n * sizeof(T), [&](auto& link) {
    check_access(link, "accumulate", to, n);
    add_natively(link, to.rank(), to.offset(), addends, count);
  });
}

template <class T>
T scaled(const T& scale, const T& value) {
  if constexpr (std::integral<T>) {
    using bits = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<bits>(scale) * static_cast<bits>(value));
  } else {
    return scale * value;
  }
}

}  // namespace detail

/// to[i] += scale * from[i] for `n` elements. One-sided; `from` may be reused on return; complete
/// at the target after flush or barrier. 1 put (see above). The products are made here.
template <class T>
void accumulate(ptr<T> to, const std::type_identity_t<T>* from, std::size_t n,
                std::type_identity_t<T> scale = T(1)) {
  detail::require_accumulable<T>();
  if (scale == T(1)) return detail::accumulate_plain(to, from, n);
  // Where memory is shared, products stay in the first cache.
  std::size_t piece = (detail::here().link.coherent() ? 4096 : std::size_t{1} << 20) / sizeof(T);
  std::vector<T> products(std::min(n, piece));
  for (std::size_t i = 0; i < n; i += piece) {
    std::size_t now = std::min(piece, n - i);
    for (std::size_t j = 0; j < now; ++j) products[j] = detail::scaled(scale, from[i + j]);
    detail::accumulate_plain(to + static_cast<std::ptrdiff_t>(i), products.data(), now);
  }
}

template <class T>
void accumulate(ptr<T> to, std::span<const std::type_identity_t<T>> from,
                std::type_identity_t<T> scale = T(1)) {
  accumulate(to, from.data(), from.size(), scale);
}

/// *to += value. 1 put.
template <class T>
void accumulate(ptr<T> to, const std::type_identity_t<T>& value) {
  detail::require_accumulable<T>();
  detail::accumulate_plain(to, &value, 1);
}

/// Begins to add. `from` must not change until the future is ready; complete at the target after a
/// flush or barrier that follows that. 1 put (see above).
template <class T>
future<void> async_accumulate(ptr<T> to, const std::type_identity_t<T>* from, std::size_t n,
                              std::type_identity_t<T> scale = T(1)) {
  detail::require_accumulable<T>();
  detail::context& c = detail::here();
  if (c.link.coherent()) {
    accumulate(to, from, n, scale);
    return future<void>::ready();
  }
  if (scale == T(1)) return detail::in_flight(c, detail::begin_accumulate(c, to, from, n));
  auto products = std::make_shared<std::vector<T>>(n);
  for (std::size_t i = 0; i < n; ++i) (*products)[i] = detail::scaled(scale, from[i]);
  return detail::in_flight(c, detail::begin_accumulate(c, to, std::as_const(*products).data(), n))
      .then([products] {});
}

}  // namespace far::inline FARSIDE_BACKEND
