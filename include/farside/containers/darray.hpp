// far::darray<T>: an array spread over a team in blocks, by a global index.
//
//   far::darray<double> grid(1'000'000);             // collectively; 10 on 4 members: 3 3 2 2
//   grid.for_each_local([](std::size_t i, double& x) { x = f(i); });
//   far::barrier();
//   std::vector<double> some(5000);
//   grid.get(123'456, std::span(some));              // from however many ranks, 1 wait
//
// containers/detail/array/element_access.hpp has the operations: get and put of one element and of
// ranges, async_ forms, atomics, local elements, fill, assign, to_vector.
#pragma once

#include <farside/containers/detail/array/element_access.hpp>

namespace far::inline FARSIDE_BACKEND {

template <class T>
class darray : public detail::element_access<T> {
  using base = detail::element_access<T>;

 public:
  using iterator = element_iterator<T>;

  /// Collective. `size` elements, not initialised: fill() or put them.
  explicit darray(std::size_t size, const container_options& with = {}) : base(make(size, with)) {}

  /// Collective: with all elements equal to `value`.
  darray(std::size_t size, const T& value, const container_options& with = {})
      : darray(size, with) {
    this->fill(value);
  }

  iterator begin() const { return iterator(*this->state_, 0); }
  iterator end() const { return iterator(*this->state_, this->size()); }

  /// The range of indices that a member holds: {first, count}. No communication.
  std::pair<std::size_t, std::size_t> block(rank_t member) const {
    const auto& s = *this->state_;
    if (member >= s.parts.size())
      detail::raise("darray '", s.label, "': block of member ", member, ", but its team has ",
                    s.parts.size(), ".");
    return {s.part_begin(member), s.part_size(member)};
  }

 private:
  friend detail::handle_access;
  explicit darray(detail::container_handle<detail::elements<T>> of) : base(std::move(of)) {}

  static detail::elements<T>* make(std::size_t size, const container_options& with) {
    detail::require_element<T>();
    rank_t holders = with.over ? with.over.size() : nprocs();
    return new detail::elements<T>("darray", size, 0, holders, with);
  }
};

}  // namespace far::inline FARSIDE_BACKEND
