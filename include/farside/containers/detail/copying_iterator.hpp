// Input iterators that point to copies: of entries that lie elsewhere, and may change meanwhile.
#pragma once

#include <farside/base/types.hpp>

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// `Walk` goes over what members have: next() gives a copy, or nothing at the end. Two that are
/// equal have come equally far.
template <class Walk>
class copying_iterator {
 public:
  using value_type = typename Walk::value_type;
  using difference_type = std::ptrdiff_t;
  using reference = const value_type&;
  using pointer = const value_type*;
  using iterator_category = std::input_iterator_tag;

  copying_iterator() = default;  ///< the end
  /// Begins with `member` and goes on with `count` of them altogether.
  template <class Of>
  copying_iterator(Of& of, rank_t member, rank_t count) : walk_(of, member, count) {
    ++*this;
  }

  reference operator*() const { return *now_; }
  pointer operator->() const { return &*now_; }
  copying_iterator& operator++() {
    now_.reset();
    if (std::optional<value_type> next = walk_.next()) now_.emplace(*std::move(next));
    return *this;
  }
  copying_iterator operator++(int) {
    copying_iterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const copying_iterator& a, const copying_iterator& b) {
    return a.now_.has_value() == b.now_.has_value() && (!a.now_ || a.walk_ == b.walk_);
  }

 private:
  Walk walk_;
  std::optional<value_type> now_;
};

/// A range of such iterators.
template <class Iterator>
struct copying_range {
  Iterator first;
  Iterator begin() const { return first; }
  Iterator end() const { return {}; }
};

}  // namespace far::inline FARSIDE_BACKEND::detail
