// far::ref<T>: what `*p` and `p[i]` give: reading it is a get, assigning to it a put.
#pragma once

#include <farside/core/ptr.hpp>

#include <source_location>
#include <type_traits>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// See core/rma.hpp. One-sided. 1 get.
template <class T>
std::remove_const_t<T> get(ptr<T> from, std::source_location at = std::source_location::current());
/// See core/rma.hpp. One-sided. 1 put.
template <class T>
void put(ptr<T> to, const std::type_identity_t<T>& value,
         std::source_location at = std::source_location::current());

template <class T>
class ref {
 public:
  using value_type = std::remove_cv_t<T>;

  /// A reference to the object at `where`. Local; no communication.
  explicit ref(ptr<T> where) : where_(where) {}
  ref(const ref&) = default;

  operator value_type() const { return far::get(where_); }
  const ref& operator=(const value_type& value) const {
    far::put(where_, value);
    return *this;
  }
  /// Copies the value, as a reference does.
  const ref& operator=(const ref& other) const { return *this = static_cast<value_type>(other); }
  ref& operator=(const ref& other) {
    std::as_const(*this) = static_cast<value_type>(other);
    return *this;
  }
  ptr<T> operator&() const { return where_; }

  // Read, change, write: 1 get + 1 put, not atomic (see far::fetch_add for that).
  const ref& operator+=(const value_type& v) const {
    return *this = static_cast<value_type>(*this) + v;
  }
  const ref& operator-=(const value_type& v) const {
    return *this = static_cast<value_type>(*this) - v;
  }
  const ref& operator*=(const value_type& v) const {
    return *this = static_cast<value_type>(*this) * v;
  }
  const ref& operator/=(const value_type& v) const {
    return *this = static_cast<value_type>(*this) / v;
  }

  friend void swap(ref a, ref b) {
    value_type kept = a;
    a = static_cast<value_type>(b);
    b = kept;
  }

 private:
  ptr<T> where_;
};

namespace detail {
template <class T>
ref<T> dereference(ptr<T> p) {
  return ref<T>(p);
}
}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
