// far::device_ptr<T>: where an object lies in the device memory of whichever rank. 64 bits, as those of
// far::ptr, with the bit set that tells device memory from host memory:
//
//   63      62 ........ 44   43 ............ 0
//   1       rank             offset in the rank's device segment, bytes
//
// All zero is null. Nothing here communicates. A kernel turns it into an address by its
// far::device_view. The CPU cannot reach what it names, so that dereferencing it on the host does not
// compile.
#pragma once

#include <farside/base/kernel_code.hpp>
#include <farside/core/ptr.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND {

template <class T>
class device_ptr;

namespace detail {
template <class T>
T* device_address_of(device_ptr<T> p);
}

/// A trivially copyable random-access pointer into device memory. `T` is trivially copyable, and may be
/// const. All of it is local: no communication.
template <class T>
class device_ptr {
 public:
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using element_type = T;

  /// A null pointer.
  device_ptr() noexcept = default;
  FARSIDE_KERNEL_CODE constexpr device_ptr(std::nullptr_t) noexcept {}
  /// The byte at `offset` of the device segment of `rank`.
  FARSIDE_KERNEL_CODE constexpr device_ptr(rank_t rank, std::size_t offset) noexcept
      : raw_(std::uint64_t{1} << 63 | static_cast<std::uint64_t>(rank) << 44 | offset) {
    detail::require_transferable<T>();
  }
  /// device_ptr<T> to device_ptr<const T>.
  template <class U>
    requires(std::is_const_v<T> && std::same_as<U, value_type>)
  FARSIDE_KERNEL_CODE constexpr device_ptr(device_ptr<U> other) noexcept : raw_(other.raw()) {}

  /// The pointer whose raw() is this.
  FARSIDE_KERNEL_CODE static constexpr device_ptr from_raw(std::uint64_t raw) noexcept {
    device_ptr result(nullptr);
    result.raw_ = raw;
    return result;
  }
  /// All of it in 64 bits; 0 if it is null.
  FARSIDE_KERNEL_CODE constexpr std::uint64_t raw() const noexcept { return raw_; }
  /// The rank in whose device segment it points.
  FARSIDE_KERNEL_CODE constexpr rank_t rank() const noexcept {
    return static_cast<rank_t>(raw_ >> 44 & (max_ranks - 1));
  }
  /// Where in that segment, in bytes.
  FARSIDE_KERNEL_CODE constexpr std::size_t offset() const noexcept {
    return raw_ & (max_segment - 1);
  }

  /// The address of this memory for this rank's device, or nullptr if that cannot load and store it.
  /// This rank's own memory always has one; that of others where the devices reach each other. It is for
  /// libraries that take addresses of device memory (cuSPARSE, cuBLAS): the CPU must not use it.
  T* local() const { return *this ? detail::device_address_of(*this) : nullptr; }

  FARSIDE_KERNEL_CODE explicit constexpr operator bool() const noexcept { return raw_ != 0; }

  template <class Never = T>
  Never& operator*() const {
    static_assert(
        sizeof(Never) == 0,
        "device memory cannot be dereferenced: the CPU cannot reach it. On the host copy it "
        "with far::device's get and put; in a kernel ask the far::device_view for its address.");
    return *local();
  }
  template <class Never = T>
  Never& operator[](difference_type) const {
    return **this;
  }

  FARSIDE_KERNEL_CODE constexpr device_ptr& operator+=(difference_type n) {
    raw_ += static_cast<std::uint64_t>(n) * sizeof(T);
    return *this;
  }
  FARSIDE_KERNEL_CODE constexpr device_ptr& operator-=(difference_type n) { return *this += -n; }
  FARSIDE_KERNEL_CODE friend constexpr device_ptr operator+(device_ptr p, difference_type n) {
    return p += n;
  }
  FARSIDE_KERNEL_CODE friend constexpr device_ptr operator-(device_ptr p, difference_type n) {
    return p += -n;
  }
  FARSIDE_KERNEL_CODE friend constexpr difference_type operator-(device_ptr a, device_ptr b) {
    return static_cast<difference_type>(a.raw_ - b.raw_) / static_cast<difference_type>(sizeof(T));
  }
  friend constexpr auto operator<=>(device_ptr, device_ptr) = default;
  friend constexpr bool operator==(device_ptr, device_ptr) = default;

 private:
  std::uint64_t raw_ = 0;
};

/// A pointer of another type to this address; alignment is the caller's to mind. Local; no communication.
template <class U, class T>
FARSIDE_KERNEL_CODE constexpr device_ptr<U> pointer_cast(device_ptr<T> p) {
  return device_ptr<U>::from_raw(p.raw());
}

/// "device 2:0x1f00", or "null". Local; no communication.
template <class T>
std::string to_text(device_ptr<T> p) {
  if (!p) return "null";
  return "device " + to_text(ptr<std::byte>(p.rank(), p.offset()));
}

}  // namespace far::inline FARSIDE_BACKEND

template <class T>
struct std::hash<far::device_ptr<T>> {
  std::size_t operator()(far::device_ptr<T> p) const noexcept {
    return std::hash<std::uint64_t>()(p.raw());
  }
};
