// The elements of far::array and far::darray: references to them, iterators over them, and how they
// are spread. One-sided; what a reference does is a get or a put.
#pragma once

#include <farside/containers/detail/array/elements.hpp>

#include <compare>
#include <cstddef>
#include <iterator>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

/// What `a[i]` and `*it` give: reading it is a get, assigning to it a put. Lives as long as the
/// array.
template <class T>
class element_ref {
 public:
  using value_type = T;
  /// For the library. Local; no communication.
  element_ref(detail::elements<T>& of, std::size_t index) : of_(&of), index_(index) {}
  element_ref(const element_ref&) = default;

  operator T() const { return of_->read(index_, concurrency::everything); }
  const element_ref& operator=(const T& value) const {
    of_->write(index_, value, concurrency::everything);
    return *this;
  }
  /// Copies the value, as a reference does.
  // NOLINTBEGIN(bugprone-unhandled-self-assignment): it writes what it has read
  const element_ref& operator=(const element_ref& other) const {
    return *this = static_cast<T>(other);
  }
  element_ref& operator=(const element_ref& other) {
    std::as_const(*this) = static_cast<T>(other);
    return *this;
  }
  // NOLINTEND(bugprone-unhandled-self-assignment)

  // Read, change, write: 1 get + 1 put, not atomic (see fetch_add for that).
  const element_ref& operator+=(const T& v) const { return *this = static_cast<T>(*this) + v; }
  const element_ref& operator-=(const T& v) const { return *this = static_cast<T>(*this) - v; }
  const element_ref& operator*=(const T& v) const { return *this = static_cast<T>(*this) * v; }
  const element_ref& operator/=(const T& v) const { return *this = static_cast<T>(*this) / v; }

  friend void swap(element_ref a, element_ref b) {
    T kept = a;
    a = static_cast<T>(b);
    b = kept;
  }

 private:
  detail::elements<T>* of_;
  std::size_t index_;
};

/// Runs over the elements of an array, from rank to rank. Random access; only dereferencing
/// communicates. Lives as long as the array, also when that is moved.
template <class T>
class element_iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using reference = element_ref<T>;
  using pointer = void;
  using iterator_category = std::random_access_iterator_tag;

  element_iterator() = default;
  element_iterator(detail::elements<T>& of, std::size_t index) : of_(&of), index_(index) {}

  reference operator*() const { return reference(*of_, index_); }
  reference operator[](difference_type n) const { return *(*this + n); }
  /// The index of the element that it is at. Local; no communication.
  std::size_t index() const { return index_; }

  element_iterator& operator+=(difference_type n) {
    index_ += static_cast<std::size_t>(n);
    return *this;
  }
  element_iterator& operator-=(difference_type n) { return *this += -n; }
  element_iterator& operator++() { return *this += 1; }
  element_iterator& operator--() { return *this += -1; }
  element_iterator operator++(int) {
    element_iterator old = *this;
    ++*this;
    return old;
  }
  element_iterator operator--(int) {
    element_iterator old = *this;
    --*this;
    return old;
  }
  friend element_iterator operator+(element_iterator i, difference_type n) { return i += n; }
  friend element_iterator operator+(difference_type n, element_iterator i) { return i += n; }
  friend element_iterator operator-(element_iterator i, difference_type n) { return i -= n; }
  friend difference_type operator-(const element_iterator& a, const element_iterator& b) {
    return static_cast<difference_type>(a.index_ - b.index_);
  }
  friend bool operator==(const element_iterator& a, const element_iterator& b) {
    return a.index_ == b.index_;
  }
  friend auto operator<=>(const element_iterator& a, const element_iterator& b) {
    return a.index_ <=> b.index_;
  }

 private:
  detail::elements<T>* of_ = nullptr;
  std::size_t index_ = 0;
};

/// How the elements of an array are spread.
struct element_statistics {
  std::size_t size = 0;
  std::size_t bytes = 0;          ///< of all elements
  std::size_t smallest_part = 0;  ///< elements on one of the members that hold some
  std::size_t largest_part = 0;
};

}  // namespace far::inline FARSIDE_BACKEND
