// What far::array and far::darray have in common: elements by index, one or many, now or later. All
// operations are one-sided unless they say collective.
//
// A promise of concurrency::owner_only says that only its owner touches an element until the next
// barrier: then reads and writes are loads and stores, without any operation. They are visible to
// others after a flush or barrier, like puts.
#pragma once

#include <farside/containers/detail/array/elements.hpp>
#include <farside/containers/element.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T>
class element_access {
  static_assert(
      fixed_length<T>,
      "far::array and far::darray hold elements of a fixed length, next to each other. For "
      "std::string, containers and the like hold far::box<T>, or use far::hash_map, whose "
      "values may be of any serializable type.");

 public:
  using value_type = T;
  using reference = element_ref<T>;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  static constexpr bool plain_elements = plain<T>;

  /// Elements of all members, its name in errors, and its team. Local; no communication.
  std::size_t size() const { return state_->size; }
  bool empty() const { return size() == 0; }
  const std::string& name() const { return state_->label; }
  const team& members() const { return state_->members; }

  /// Reads element `i`; sees this rank's own earlier puts. 1 get; none with
  /// concurrency::owner_only.
  T get(std::size_t i, concurrency with = concurrency::everything) const {
    return state_->read(i, with);
  }

  /// Writes element `i`; complete at its owner after flush or barrier. 1 put; none with
  /// concurrency::owner_only.
  void put(std::size_t i, const T& value, concurrency with = concurrency::everything) {
    state_->write(i, value, with);
  }

  reference operator[](std::size_t i) const { return reference(*state_, i); }

  /// Begins to read. 1 get, not waited for.
  future<T> async_get(std::size_t i, concurrency with = concurrency::everything) const {
    elements<T>& s = *state_;
    s.check(container_operation::find, "async_get", i, 1, with);
    if constexpr (plain_elements)
      return far::async_get(s.where_is(i));
    else
      return far::async_get(s.where_is(i)).then([](const form& f) {
        return fixed_form<T>::unpack(f);
      });
  }
  /// Begins to write a copy of `value`. 1 put.
  future<void> async_put(std::size_t i, const T& value,
                         concurrency with = concurrency::everything) {
    put(i, value, with);
    return future<void>::ready();
  }

  /// Reads elements `first` to `first + to.size() - 1`. 1 get for each member that holds some of
  /// them, all in flight together: 1 wait.
  void get(std::size_t first, std::span<T> to, concurrency with = concurrency::everything) const {
    elements<T>& s = *state_;
    s.check(container_operation::find, "get", first, to.size(), with);
    if constexpr (plain_elements) {
      s.read_forms(first, to.data(), to.size());
    } else {
      raw_array<form> forms(to.size());
      s.read_forms(first, forms.data(), to.size());
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = fixed_form<T>::unpack(forms.data()[i]);
    }
  }
  /// Writes elements `first` and on; `from` may change on return, complete after flush or barrier.
  /// 1 put for each member that holds some of them.
  void put(std::size_t first, std::span<const T> from, concurrency with = concurrency::everything) {
    elements<T>& s = *state_;
    s.check(container_operation::modify, "put", first, from.size(), with);
    if constexpr (plain_elements) {
      s.write_forms(first, from.data(), from.size());
    } else {
      raw_array<form> forms(from.size());
      for (std::size_t i = 0; i < from.size(); ++i)
        new (forms.data() + i) form(fixed_form<T>::pack(from[i]));
      s.write_forms(first, forms.data(), from.size());
    }
  }
  /// Begins to read a range; `to` must live until the future is ready. For trivially copyable T.
  /// 1 get for each member that holds some of it, not waited for.
  future<void> async_get(std::size_t first, std::span<T> to,
                         concurrency with = concurrency::everything) const
    requires plain_elements
  {
    state_->check(container_operation::find, "async_get", first, to.size(), with);
    return state_->begin_read(first, to.data(), to.size());
  }
  /// Begins to write a range; `from` must not change until the future is ready. 1 put for each
  /// member that holds some of it, not waited for.
  future<void> async_put(std::size_t first, std::span<const T> from,
                         concurrency with = concurrency::everything)
    requires plain_elements
  {
    elements<T>& s = *state_;
    s.check(container_operation::modify, "async_put", first, from.size(), with);
    std::vector<future<void>> pieces;
    s.for_pieces(first, from.size(), [&](far::ptr<T> to, std::size_t at, std::size_t piece) {
      if (to.rank() == s.mine.rank()) s.own_puts = true;
      pieces.push_back(far::async_put(to, from.data() + at, piece));
    });
    return when_all(std::move(pieces));
  }

  /// Atomics on an element, of 32 or 64 bits; the old value. While they run nobody may put to it. 1
  /// atomic each.
  T fetch_add(std::size_t i, T value, concurrency with = concurrency::everything) {
    return far::fetch_add(changed(i, "fetch_add", with), value);
  }
  T fetch_sub(std::size_t i, T value, concurrency with = concurrency::everything) {
    return far::fetch_sub(changed(i, "fetch_sub", with), value);
  }
  T fetch_min(std::size_t i, T value, concurrency with = concurrency::everything) {
    return far::fetch_min(changed(i, "fetch_min", with), value);
  }
  T fetch_max(std::size_t i, T value, concurrency with = concurrency::everything) {
    return far::fetch_max(changed(i, "fetch_max", with), value);
  }
  T swap(std::size_t i, T value, concurrency with = concurrency::everything) {
    return far::swap(changed(i, "swap", with), value);
  }
  T compare_swap(std::size_t i, T expected, T desired, concurrency with = concurrency::everything) {
    return far::compare_swap(changed(i, "compare_swap", with), expected, desired);
  }
  future<T> async_fetch_add(std::size_t i, T value, concurrency with = concurrency::everything) {
    return far::async_fetch_add(changed(i, "async_fetch_add", with), value);
  }
  future<T> async_compare_swap(std::size_t i, T expected, T desired,
                               concurrency with = concurrency::everything) {
    return far::async_compare_swap(changed(i, "async_compare_swap", with), expected, desired);
  }

  /// Where element `i` lies, for all that far pointers can do. Promises are not checked on that
  /// way. Local; no communication.
  far::ptr<T> ptr(std::size_t i) const
    requires plain_elements
  {
    state_->require_range("ptr", i, 1);
    return state_->where_is(i);
  }
  /// The member that holds element `i`. Local; no communication.
  rank_t owner(std::size_t i) const {
    state_->require_range("owner", i, 1);
    return state_->owner(i);
  }

  /// The elements that lie here, to load and store; empty where there are none. No communication;
  /// what others do at the same time is the caller's to order, and stores are visible to them after
  /// a flush or barrier.
  std::span<T> local() const
    requires plain_elements
  {
    return {state_->my_elements(), state_->my_size()};
  }
  /// The index of the first of them, and how many they are. Local; no communication.
  std::size_t local_begin() const {
    return state_->my_part() < state_->parts.size() ? state_->part_begin(state_->my_part())
                                                    : size();
  }
  std::size_t local_size() const { return state_->my_size(); }

  /// Calls `work(index, element)` for each element that lies here; it may change the element. No
  /// communication, as local().
  template <class Work>
  void for_each_local(Work work) {
    elements<T>& s = *state_;
    std::size_t first = local_begin();
    for (std::size_t i = 0; i < s.my_size(); ++i) {
      if constexpr (plain_elements) {
        work(first + i, s.my_elements()[i]);
      } else {
        T value = fixed_form<T>::unpack(s.my_elements()[i]);
        work(first + i, value);
        s.my_elements()[i] = fixed_form<T>::pack(value);
      }
    }
  }

  /// Collective: all elements become `value`, visible to all members. 2 barriers, and 1 put
  /// for each 64 KiB.
  void fill(const T& value) {
    form packed = fixed_form<T>::pack(value);
    collectively_write([&](form* to, std::size_t, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) new (to + i) form(packed);
    });
  }

  /// Collective: takes the elements from `values`, which has them all, the same on every member:
  /// each writes what it holds. 2 barriers, and 1 put for each 64 KiB.
  void assign(std::span<const T> values) {
    if (values.size() != size())
      raise(state_->kind_name, " '", name(), "': assign of ", values.size(), " values, but it has ",
            size(), " elements.");
    collectively_write([&](form* to, std::size_t first, std::size_t n) {
      for (std::size_t i = 0; i < n; ++i) new (to + i) form(fixed_form<T>::pack(values[first + i]));
    });
  }

  /// All elements. One-sided; costs what a get of the whole range does.
  std::vector<T> to_vector(concurrency with = concurrency::everything) const {
    elements<T>& s = *state_;
    s.check(container_operation::find, "to_vector", 0, size(), with);
    raw_array<form> forms(size());
    s.read_forms(0, forms.data(), size());
    std::vector<T> result;
    result.reserve(size());
    for (std::size_t i = 0; i < size(); ++i)
      result.push_back(fixed_form<T>::unpack(forms.data()[i]));
    return result;
  }

  /// Collective: all elements on every member, as all have left them. 2 barriers.
  std::vector<T> all_to_vector() const {
    auto note = calling<"all_to_vector of an array">(*state_);
    barrier(state_->members.members());
    std::vector<T> result = to_vector();
    barrier(state_->members.members());
    return result;
  }

  /// No communication.
  element_statistics statistics() const {
    const elements<T>& s = *state_;
    return {s.size, s.size * sizeof(form), s.shortest, s.shortest + (s.longer != 0)};
  }

 protected:
  using form = typename fixed_form<T>::type;

  friend handle_access;
  explicit element_access(elements<T>* state) : state_(state) {}
  explicit element_access(container_handle<elements<T>> of) : state_(std::move(of)) {}

  far::ptr<T> changed(std::size_t i, const char* what, concurrency with) {
    static_assert(plain_elements,
                  "far atomics need elements that are integers or words themselves");
    state_->check(container_operation::modify, what, i, 1, with);
    return state_->where_is(i);
  }

  template <class Make>
  void collectively_write(Make make) {
    elements<T>& s = *state_;
    auto note = calling<"fill or assign of an array">(s);
    barrier(s.members.members());
    constexpr std::size_t piece = std::max<std::size_t>(1, (std::size_t{1} << 16) / sizeof(form));
    raw_array<form> values(std::min(s.my_size(), piece));
    for (std::size_t done = 0, n; done < s.my_size(); done += n) {
      n = std::min(piece, s.my_size() - done);
      make(values.data(), local_begin() + done, n);
      far::put(s.mine + static_cast<std::ptrdiff_t>(done), values.data(), n);
    }
    barrier(s.members.members());
  }

  container_handle<elements<T>> state_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
