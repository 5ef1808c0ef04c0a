// far::ptr<T>: where an object lies, on whichever rank. 64 bits, so that a far pointer fits a
// far compare-and-swap and lock-free linked structures become possible:
//
//   63      62 ........ 44   43 ............ 0
//   kind    rank             offset in the rank's segment, bytes
//
// kind is 0 for host memory; 1 is kept for device memory. All zero is null: the first bytes
// of a segment belong to nobody (null_guard).
//
// All that a far::ptr does by itself is local: no communication. Only dereferencing it
// communicates.
#pragma once

#include <farside/backend/concept.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <ostream>
#include <string>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

template <class T>
class ref;

template <class T>
class ptr;

namespace detail {
template <class T>
void* address_of(ptr<T> p);
template <class T>
ref<T> dereference(ptr<T> p);
template <class T>
void check_arithmetic(ptr<T> from, ptr<T> to);

/// What far memory can hold. Asked when a pointer is made or used, not when its type is named, so
/// that a node can hold a far::ptr to its own type.
template <class T>
constexpr void require_transferable() {
  static_assert(std::is_trivially_copyable_v<T>,
                "far memory holds trivially copyable types only, as other ranks copy their bytes. "
                "For std::string, containers and the like use far::box<T>, which serializes.");
  static_assert(!std::is_volatile_v<T>, "far memory of volatile types makes no sense: use T");
}
}  // namespace detail

inline constexpr rank_t max_ranks = rank_t{1} << 19;
inline constexpr std::size_t max_segment = std::size_t{1} << 44;

/// A trivially copyable random-access iterator over far memory. `T` is trivially copyable, and
/// may be const. No operation but dereferencing communicates.
template <class T>
class ptr {
 public:
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using reference = ref<T>;
  using pointer = ptr;
  using element_type = T;
  using iterator_category = std::random_access_iterator_tag;

  /// A null pointer.
  constexpr ptr() noexcept { detail::require_transferable<T>(); }
  constexpr ptr(std::nullptr_t) noexcept {}
  /// The byte at `offset` of the segment of `rank`.
  constexpr ptr(rank_t rank, std::size_t offset) noexcept
      : raw_(static_cast<std::uint64_t>(rank) << 44 | offset) {}

  /// ptr<T> to ptr<const T>.
  template <class U>
    requires(std::is_const_v<T> && std::same_as<U, value_type>)
  constexpr ptr(ptr<U> other) noexcept : raw_(other.raw()) {}

  /// The pointer whose raw() is this.
  static constexpr ptr from_raw(std::uint64_t raw) noexcept {
    ptr result(nullptr);
    result.raw_ = raw;
    return result;
  }

  /// All of it in 64 bits; 0 if it is null.
  constexpr std::uint64_t raw() const noexcept { return raw_; }
  /// The rank in whose segment it points.
  constexpr rank_t rank() const noexcept {
    return static_cast<rank_t>(raw_ >> 44 & (max_ranks - 1));
  }
  /// Where in that segment, in bytes.
  constexpr std::size_t offset() const noexcept { return raw_ & (max_segment - 1); }

  /// The address of this memory in this process, or nullptr if it cannot load and store it, as
  /// memory of another node, or of no segment. Never communicates.
  /// What may run at the same time is the caller's to order (flush, barrier).
  T* local() const { return *this ? static_cast<T*>(detail::address_of(*this)) : nullptr; }

  explicit constexpr operator bool() const noexcept { return raw_ != 0; }

  reference operator*() const { return detail::dereference(*this); }
  reference operator[](difference_type i) const { return *(*this + i); }

  constexpr ptr& operator+=(difference_type n) {
    [[maybe_unused]] ptr old = *this;
    raw_ += static_cast<std::uint64_t>(n) * sizeof(T);
    if constexpr (FARSIDE_CHECKED) {
      if (!std::is_constant_evaluated()) detail::check_arithmetic(old, *this);
    }
    return *this;
  }
  constexpr ptr& operator-=(difference_type n) { return *this += -n; }
  constexpr ptr& operator++() { return *this += 1; }
  constexpr ptr& operator--() { return *this += -1; }
  constexpr ptr operator++(int) {
    ptr old = *this;
    ++*this;
    return old;
  }
  constexpr ptr operator--(int) {
    ptr old = *this;
    --*this;
    return old;
  }
  friend constexpr ptr operator+(ptr p, difference_type n) { return p += n; }
  friend constexpr ptr operator+(difference_type n, ptr p) { return p += n; }
  friend constexpr ptr operator-(ptr p, difference_type n) { return p += -n; }
  friend constexpr difference_type operator-(ptr a, ptr b) {
    return static_cast<difference_type>(a.raw_ - b.raw_) / static_cast<difference_type>(sizeof(T));
  }
  friend constexpr auto operator<=>(ptr, ptr) = default;
  friend constexpr bool operator==(ptr, ptr) = default;

 private:
  std::uint64_t raw_ = 0;
};

/// A pointer of another type to this address; alignment is the caller's to mind.
template <class U, class T>
constexpr ptr<U> pointer_cast(ptr<T> p) {
  return ptr<U>::from_raw(p.raw());
}

/// "rank:0xoffset", or "null".
template <class T>
std::string to_text(ptr<T> p) {
  if (!p) return "null";
  char text[48];
  std::snprintf(text, sizeof text, "%u:0x%llx", p.rank(),
                static_cast<unsigned long long>(p.offset()));
  return text;
}

template <class T>
std::ostream& operator<<(std::ostream& out, ptr<T> p) {
  return out << to_text(p);
}

}  // namespace far::inline FARSIDE_BACKEND

template <class T>
struct std::hash<far::ptr<T>> {
  std::size_t operator()(far::ptr<T> p) const noexcept {
    return std::hash<std::uint64_t>()(p.raw());
  }
};
