// far::array<T>: elements on one rank, which all ranks read and write.
//
//   far::array<long> table(0, 1000);       // on member 0, collectively
//   table.put(7, 42);
//   long x = table[7];
//   table.fetch_add(8, 1);
//
// containers/detail/array/element_access.hpp has the operations: get and put of one element and of
// ranges, async_ forms, atomics, fill, assign, to_vector.
#pragma once

#include <farside/containers/detail/array/element_access.hpp>

namespace far::inline FARSIDE_BACKEND {

template <class T>
class array : public detail::element_access<T> {
  using base = detail::element_access<T>;

 public:
  /// Collective. `size` elements in the segment of member `host`, not initialised: fill() or put
  /// them. 1 all_gather and 2 barriers.
  array(rank_t host, std::size_t size, const container_options& with = {})
      : base(make(host, size, with)) {}

  /// The member that holds the elements. Local; no communication.
  rank_t host() const { return this->state_->first_holder; }

  /// Far pointers where T is trivially copyable, element_iterator elsewhere: random access.
  auto begin() const {
    if constexpr (base::plain_elements)
      return this->state_->parts[0];
    else
      return element_iterator<T>(*this->state_, 0);
  }
  auto end() const { return begin() + static_cast<std::ptrdiff_t>(this->size()); }

 private:
  friend detail::handle_access;
  explicit array(detail::container_handle<detail::elements<T>> of) : base(std::move(of)) {}

  static detail::elements<T>* make(rank_t host, std::size_t size, const container_options& with) {
    detail::require_element<T>();
    detail::require_root(with.over ? with.over : world(), "array", host);
    return new detail::elements<T>("array", size, host, 1, with);
  }
};

}  // namespace far::inline FARSIDE_BACKEND
