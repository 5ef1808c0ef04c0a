// far::strided: the shape of a block of elements in memory, for core/strided.hpp.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/mutants.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>

namespace far::inline FARSIDE_BACKEND {

/// A few numbers, one for each level of a strided form: at most nine. Made of integers of any type
/// (`{4, rows}`), or of a span.
class level_list {
 public:
  static constexpr std::size_t most = 9;

  /// No levels. Local; no communication.
  level_list() = default;
  /// One number for each level. Local; no communication.
  template <std::integral... Integers>
    requires(sizeof...(Integers) > 0 && sizeof...(Integers) <= most)
  level_list(Integers... values)
      : values_{static_cast<std::ptrdiff_t>(values)...}, size_(sizeof...(Integers)) {}
  /// From a span. Local; no communication.
  explicit level_list(std::span<const std::ptrdiff_t> values) : size_(values.size()) {
    if (size_ > most)
      detail::raise("a strided operation was given ", size_,
                    " levels. There are at most nine counts and eight strides: call it several "
                    "times, in a loop over the outer levels.");
    for (std::size_t i = 0; i < size_; ++i) values_[i] = values[i];
  }

  /// How many levels. Local; no communication.
  std::size_t size() const { return size_; }
  std::ptrdiff_t operator[](std::size_t level) const { return values_[level]; }

 private:
  std::array<std::ptrdiff_t, most> values_{};
  std::size_t size_ = 0;
};

/// A shape, counted in elements. `counts[0]` elements lie side by side. A side whose strides are
/// left out is dense; otherwise it has one stride less than there are counts.
struct strided {
  level_list counts{};
  level_list far_strides{};
  level_list local_strides{};
};

namespace detail {

/// A shape that has been checked, with no more levels than it needs.
class stride_levels {
 public:
  stride_levels(const char* operation, const strided& shape) {
    if (shape.counts.size() == 0)
      raise(operation,
            " was given no counts. Say how many elements lie side by side, and how many "
            "such runs there are, as in {.counts = {4, 10}, .far_strides = {100}}.");
    check_strides(operation, "far_strides", shape.counts, shape.far_strides);
    check_strides(operation, "local_strides", shape.counts, shape.local_strides);
    elements_ = 1;
    for (std::size_t i = 0; i < shape.counts.size(); ++i) {
      if (shape.counts[i] < 0)
        raise(operation, " was given ", shape.counts[i], " as a count. Counts are not negative.");
      std::size_t before = elements_;
      if (__builtin_mul_overflow(before, static_cast<std::size_t>(shape.counts[i]), &elements_) &&
          before != 0)
        raise(operation, " was given counts whose product no memory holds.");
      auto dense = static_cast<std::ptrdiff_t>(before);
      auto stride = [&](const level_list& of) {
        return i == 0 ? 1 : of.size() == 0 ? dense : of[i - 1];
      };
      append({shape.counts[i], stride(shape.far_strides), stride(shape.local_strides)});
    }
  }

  std::size_t elements() const { return elements_; }
  /// How many pieces for_each() visits.
  std::size_t pieces() const {
    return elements_ == 0 ? 0 : elements_ / static_cast<std::size_t>(run());
  }

  /// Calls `visit(place in far memory, place here, elements)` for each piece, in elements.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (elements_ == 0) return;
    // Levels from `first` on have a position each; below it is what lies side by side.
    const std::size_t first = side_by_side() ? 1 : 0;
    std::ptrdiff_t position[level_list::most] = {};
    std::ptrdiff_t far_place = 0, local_place = 0;
    for (;;) {
      visit(far_place, local_place, static_cast<std::size_t>(run()));
      std::size_t at = first;
      for (; at < size_; ++at) {
        const level& l = levels_[at];
        far_place += l.far_stride, local_place += l.local_stride;
        if (++position[at] < l.count) break;
        far_place -= l.far_stride * l.count, local_place -= l.local_stride * l.count;
        position[at] = 0;
      }
      if (at >= size_) return;
    }
  }

 private:
  struct level {
    std::ptrdiff_t count, far_stride, local_stride;
  };

  static void check_strides(const char* operation, const char* which, const level_list& counts,
                            const level_list& strides) {
    if (strides.size() != 0 && strides.size() + 1 != counts.size())
      raise(operation, " was given ", counts.size(), " counts and ", strides.size(), " ", which,
            ". The first count is of elements side by side, and each further one has a stride: "
            "give one stride less than counts, or none if that side is dense.");
  }

  bool side_by_side() const {
    return size_ != 0 && levels_[0].far_stride == 1 && levels_[0].local_stride == 1;
  }
  /// Elements of one piece.
  std::ptrdiff_t run() const { return side_by_side() ? levels_[0].count : 1; }

  /// Joins a level to the one below it, if both sides go on where that one ends. A level of a
  /// single element is dropped.
  void append(const level& next) {
    if (next.count == 1) return;
    if (size_ != 0) {
      level& last = levels_[size_ - 1];
      if (next.far_stride == last.far_stride * last.count &&
          (next.local_stride == last.local_stride * last.count ||
           FARSIDE_MUTANT(strides_joined_too_soon))) {
        last.count *= next.count;
        return;
      }
    }
    levels_[size_++] = next;
  }

  std::array<level, level_list::most> levels_{};
  std::size_t size_ = 0;
  std::size_t elements_ = 0;
};

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
