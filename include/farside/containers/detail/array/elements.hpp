// The state of far::array and far::darray: elements by index, in one block on each of the members
// that hold some. Blocks differ by one element at most, the longer ones first:
//
//   10 elements on 4 members:   | 0 1 2 | 3 4 5 | 6 7 | 8 9 |
//
// Elements are only ever read by gets and written by puts or by atomics, as the caller chooses;
// rules 4 to 6 of docs/memory_model.md hold for each of them.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/containers/detail/concurrency_check.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/detail/container.hpp>
#include <farside/core/rma.hpp>
#include <farside/core/serialization.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T>
constexpr void require_element() {
  static_assert(
      fixed_length<T>,
      "far::array and far::darray hold elements of a fixed length: trivially copyable types, "
      "pairs, tuples and arrays of such, and types with a fixed form in far::serializer. For "
      "std::string, containers and the like hold far::box<T>, which owns nothing: release "
      "what you overwrite.");
}

/// The bytes of `n` objects that need no constructor.
template <class Form>
class raw_array {
 public:
  explicit raw_array(std::size_t n)
      : bytes_(static_cast<std::byte*>(
            ::operator new[](std::max<std::size_t>(1, n * sizeof(Form)), alignment))) {}
  Form* data() const { return reinterpret_cast<Form*>(bytes_.get()); }

 private:
  static constexpr std::align_val_t alignment{std::max<std::size_t>(alignof(Form), 16)};
  struct deleter {
    void operator()(std::byte* p) const { ::operator delete[](p, alignment); }
  };
  std::unique_ptr<std::byte[], deleter> bytes_;
};

template <class T>
struct elements : shared_state {
  using form = typename fixed_form<T>::type;
  static constexpr bool plain_elements = plain<T>;

  /// Collective. `count` elements over the members `first` to `first + holders - 1`.
  elements(const char* kind, std::size_t count, rank_t first, rank_t holders,
           const container_options& with);
  void release() override {
    overlaps.release();
    if (!parts.empty()) dealloc(mine);
  }
  void after_barrier() override {
    overlaps.next_epoch();
    own_puts = false;
  }

  /// Where one lies: which part, and its place in it.
  struct place {
    std::size_t part;
    std::size_t offset;
  };
  place find(std::size_t index) const {
    if (index < longer_end) return {index / (shortest + 1), index % (shortest + 1)};
    std::size_t rest = index - longer_end;
    return {longer + rest / shortest, rest % shortest};
  }
  std::size_t part_begin(std::size_t part) const {
    return part * shortest + std::min(part, longer);
  }
  std::size_t part_size(std::size_t part) const { return shortest + (part < longer); }
  rank_t owner(std::size_t index) const {
    return first_holder + static_cast<rank_t>(find(index).part);
  }
  ptr<form> where_is(std::size_t index) const {
    place at = find(index);
    return parts[at.part] + static_cast<std::ptrdiff_t>(at.offset);
  }
  /// This member's part; parts.size() if it holds none.
  std::size_t my_part() const {
    rank_t me = members.rank();
    return me >= first_holder && me - first_holder < parts.size() ? me - first_holder
                                                                  : parts.size();
  }
  std::size_t my_size() const { return my_part() < parts.size() ? part_size(my_part()) : 0; }
  form* my_elements() const { return my_size() != 0 ? mine.local() : nullptr; }

  void require_range(const char* what, std::size_t index, std::size_t n) const {
    if (index > size || n > size - index) [[unlikely]]
      raise(kind_name, " '", label, "': ", what, " of ", n, " elements at index ", index,
            ", but it has ", size, ".");
  }
  void check(container_operation kind, const char* what, std::size_t index, std::size_t n,
             concurrency with) {
    require_range(what, index, n);
    overlaps.check(kind, what, with, [&] { return std::to_string(index); });
  }

  /// The memory of an element that the caller has promised to be its own business.
  form* promised_local(std::size_t index, const char* what) {
    place at = find(index);
    if (at.part != my_part()) [[unlikely]]
      raise(kind_name, " '", label, "': ", what, "(", index,
            ") was promised to be local, but that element lies on member ", owner(index),
            " of the team, and this is member ", members.rank(), ".");
    if (std::exchange(own_puts, false) && !FARSIDE_MUTANT(own_puts_not_awaited))
      flush(mine.rank());  // they may not have landed yet
    return mine.local() + at.offset;
  }

  T read(std::size_t index, concurrency with) {
    check(container_operation::find, "get", index, 1, with);
    if (includes(with, concurrency::owner_only))
      return fixed_form<T>::unpack(from_memory<form>(promised_local(index, "get")));
    return fixed_form<T>::unpack(get(where_is(index)));
  }
  void write(std::size_t index, const T& value, concurrency with) {
    check(container_operation::modify, "put", index, 1, with);
    form packed = fixed_form<T>::pack(value);
    if (includes(with, concurrency::owner_only)) {
      std::memcpy(static_cast<void*>(promised_local(index, "put")), &packed, sizeof(form));
      return;
    }
    ptr<form> at = where_is(index);
    if (at.rank() == mine.rank()) own_puts = true;
    put(at, packed);
  }

  /// Calls `work(pointer, offset in the range, n)` for each piece of a range that lies on one
  /// member.
  template <class Work>
  void for_pieces(std::size_t index, std::size_t n, Work work) const {
    for (std::size_t done = 0; done < n;) {
      place at = find(index + done);
      std::size_t piece = std::min(n - done, part_size(at.part) - at.offset);
      if (FARSIDE_MUTANT(pieces_reach_beyond_their_part)) piece = std::min(n - done, shortest + 1);
      work(parts[at.part] + static_cast<std::ptrdiff_t>(at.offset), done, piece);
      done += piece;
    }
  }
  future<void> begin_read(std::size_t index, form* to, std::size_t n) const;
  void read_forms(std::size_t index, form* to, std::size_t n) const;
  void write_forms(std::size_t index, const form* from, std::size_t n);

  std::size_t size;
  std::size_t shortest = 0;    ///< elements of a part at least
  std::size_t longer = 0;      ///< how many parts have one more
  std::size_t longer_end = 0;  ///< where their elements end
  rank_t first_holder;
  ptr<form> mine;  ///< this member's part, if it holds one
  std::vector<ptr<form>> parts;
  bool own_puts = false;  ///< puts to its own part that may not have landed
  concurrency_check overlaps;
};

template <class T>
elements<T>::elements(const char* kind, std::size_t count, rank_t first, rank_t holders,
                      const container_options& with)
    : shared_state(kind, with), size(count), first_holder(first), overlaps(*this) {
  require_possible(text(kind, " '", label, "'"), count, sizeof(form), holders);
  shortest = size / holders;
  longer = size % holders;
  longer_end = longer * (shortest + 1);
  bool holds = members.rank() >= first && members.rank() - first < holders;
  // Never none, so that every part has an address.
  auto all =
      alloc_together<form>(members, full_name(),
                           holds ? std::max<std::size_t>(1, part_size(members.rank() - first)) : 0);
  mine = all[members.rank()];
  parts.assign(all.begin() + first, all.begin() + first + holders);
  detail::barrier(members.members());
}

/// Gets of all pieces in flight together, right to where they belong.
template <class T>
future<void> elements<T>::begin_read(std::size_t index, form* to, std::size_t n) const {
  std::vector<future<void>> pieces;
  for_pieces(index, n, [&](ptr<form> from, std::size_t at, std::size_t piece) {
    pieces.push_back(async_get(from, to + at, piece));
  });
  if (pieces.size() == 1) return std::move(pieces[0]);
  return when_all(std::move(pieces));
}

template <class T>
void elements<T>::read_forms(std::size_t index, form* to, std::size_t n) const {
  if (!here().link.coherent()) return begin_read(index, to, n).get();
  for_pieces(index, n,
             [&](ptr<form> from, std::size_t at, std::size_t piece) { get(from, to + at, piece); });
}

template <class T>
void elements<T>::write_forms(std::size_t index, const form* from, std::size_t n) {
  for_pieces(index, n, [&](ptr<form> to, std::size_t at, std::size_t piece) {
    if (to.rank() == mine.rank()) own_puts = true;
    put(to, from + at, piece);
  });
}

}  // namespace far::inline FARSIDE_BACKEND::detail
