// What changes of a map do to the value of a key, each in a type of its own: engine::update and the
// short ways are compiled for each of them.
#pragma once

#include <farside/containers/detail/map/bucket.hpp>
#include <farside/core/access.hpp>
#include <farside/core/concurrency.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <type_traits>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// What is small is handed on by value: then it can stay in registers.
template <class T>
using handed = std::conditional_t<std::is_trivially_copyable_v<T> && sizeof(T) <= 16, T, const T&>;

/// An optional of a small value that stays in registers on return. Of a std::optional compilers
/// store a byte and load a word, which a CPU has to wait for.
template <class V>
class two_words {
 public:
  FARSIDE_HOT two_words(std::nullopt_t) : value_(0), there_(0) {}
  FARSIDE_HOT two_words(const V& value) : value_(0), there_(1) {
    std::memcpy(&value_, &value, sizeof value);
  }
  FARSIDE_HOT two_words(const std::optional<V>& from) : value_(0), there_(from.has_value()) {
    if (from) std::memcpy(&value_, &*from, sizeof(V));
  }
  FARSIDE_HOT operator std::optional<V>() const {
    if (there_ == 0) return std::nullopt;
    V value;
    std::memcpy(&value, &value_, sizeof value);
    return value;
  }

 private:
  std::uint64_t value_, there_;
};
template <class V>
using returned =
    std::conditional_t<std::is_trivial_v<V> && sizeof(V) <= 8, two_words<V>, std::optional<V>>;

/// What happens to a value that is there, and which one comes where none is.
template <class V>
struct keep {  // insert
  static constexpr bool changes = false, uses_old = false;
  handed<V> value;
  const V& initial() const { return value; }
  const V& next(const V&) const { return value; }
};
template <class V>
struct replace {  // insert_or_assign
  static constexpr bool changes = true, uses_old = false;
  handed<V> value;
  const V& initial() const { return value; }
  const V& next(const V&) const { return value; }
};
template <class V, class Op>
struct combine {  // accumulate
  static constexpr bool changes = true, uses_old = true;
  handed<V> value;
  Op& op;
  const V& initial() const { return value; }
  V next(const V& old) const { return static_cast<V>(op(old, value)); }
};
template <class V, class F>
struct transform {  // modify
  static constexpr bool changes = true, uses_old = true;
  F& change;
  V initial() const { return next(V()); }
  V next(const V& old) const {
    V value = old;
    no_communication inside("modify");
    change(value);
    return value;
  }
};

/// Additions that fetch_add makes.
template <class Update>
inline constexpr bool adds = false;
template <class V>
inline constexpr bool adds<combine<V, std::plus<>>> = true;
template <class V>
inline constexpr bool adds<combine<V, std::plus<V>>> = true;
template <class V>
inline constexpr bool adds<combine<V, const std::plus<>>> = true;
template <class V>
inline constexpr bool adds<combine<V, const std::plus<V>>> = true;

/// What an update is to promises, and to owners that are asked for it (asking.hpp).
template <class Update>
inline constexpr container_operation kind_of = container_operation::modify;
template <class V>
inline constexpr container_operation kind_of<keep<V>> = container_operation::insert;

}  // namespace far::inline FARSIDE_BACKEND::detail::map
