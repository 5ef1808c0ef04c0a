// far::in_order: location consistency. What a rank does through it to one place takes effect in
// the order of its program, with no flush that the program has to think of.
//
//   far::in_order mine;
//   mine.put(cell, &one, 1);
//   mine.put(cell, &two, 1);          // flushes first: the two puts could change places
//   mine.put(cell + 1, &three, 1);    // does not: it is another place
//   mine.accumulate(cell, &four, 1);  // flushes
//
// docs/memory_model.md, "One rank, one place", says which pairs of operations need a flush. For each
// rank the object keeps the ranges of memory that this rank has changed there since the last flush
// of that rank by way of it: up to four, more are joined.
//
//   clean --put, accumulate--> range noted --get; accumulate of the same type; elsewhere--> noted
//                                   \--anything else that overlaps: flush--> clean
//
// Invariant: two operations of this rank that overlap, and that could change places, have a flush
// of their target between them. Where memory is coherent none could, and nothing is kept.
//
// Local; by one thread at a time. An operation costs what the same one of the library does, and 1
// flush of its target if it would overtake another one. Operations that go past the object are not
// seen by it.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/pieces.hpp>
#include <farside/core/rma.hpp>
#include <farside/core/strided.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

class in_order {
 public:
  /// Local; no communication.
  in_order() : targets_(detail::here().link.coherent() ? 0 : detail::here().link.nprocs()) {}

  /// As far::put. One-sided. 1 put, and 1 flush if it overlaps an earlier change.
  template <class T>
  void put(ptr<T> to, const std::type_identity_t<T>* from, std::size_t n) {
    change(to, n, by_put);
    far::put(to, from, n);
  }
  /// As far::get: it sees all that this rank has changed before, so nothing is flushed. One-sided.
  /// 1 get.
  template <class T>
  void get(ptr<T> from, std::remove_const_t<T>* to, std::size_t n) {
    far::get(from, to, n);
  }
  /// As far::accumulate. One-sided. 1 put, and 1 flush if it overlaps an earlier put, or an
  /// accumulate of another type.
  template <class T>
  void accumulate(ptr<T> to, const std::type_identity_t<T>* from, std::size_t n,
                  std::type_identity_t<T> scale = T(1)) {
    change(to, n, by_accumulate<T>);
    far::accumulate(to, from, n, scale);
  }
  /// As far::fetch_add. One-sided. 1 atomic, and 1 flush if it overlaps an earlier change.
  template <class T>
  T fetch_add(ptr<T> at, std::type_identity_t<T> value) {
    settle(at, 1);
    return far::fetch_add(at, value);
  }
  /// As far::swap. One-sided. 1 atomic, and 1 flush if it overlaps an earlier change.
  template <class T>
  T swap(ptr<T> at, std::type_identity_t<T> value) {
    settle(at, 1);
    return far::swap(at, value);
  }
  /// As far::compare_swap. One-sided. 1 atomic, and 1 flush if it overlaps an earlier change.
  template <class T>
  T compare_swap(ptr<T> at, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
    settle(at, 1);
    return far::compare_swap(at, expected, desired);
  }

  /// As far::put_strided. One-sided. Its costs, and 1 flush if the range from its first to its last
  /// element overlaps an earlier change.
  template <class T>
  void put_strided(ptr<T> to, const std::type_identity_t<T>* from, const strided& shape) {
    change_strided(to, shape, by_put);
    far::put_strided(to, from, shape);
  }
  /// As far::accumulate_strided. One-sided. Its costs, and 1 flush as above.
  template <class T>
  void accumulate_strided(ptr<T> to, const std::type_identity_t<T>* from, const strided& shape,
                          std::type_identity_t<T> scale = T(1)) {
    change_strided(to, shape, by_accumulate<T>);
    far::accumulate_strided(to, from, shape, scale);
  }
  /// As far::put_pieces. One-sided. 1 put a piece, and 1 flush for each that overlaps an earlier
  /// change.
  template <class T>
  void put_pieces(std::span<const std::type_identity_t<put_piece<T>>> pieces) {
    for (const auto& piece : pieces) settle(piece.to, piece.n);
    far::put_pieces<T>(pieces);
    for (const auto& piece : pieces) note(piece.to, piece.n, by_put);
  }
  /// As far::accumulate_pieces. One-sided. 1 put a piece, and 1 flush for each that overlaps an
  /// earlier change that it could overtake.
  template <class T>
  void accumulate_pieces(std::span<const std::type_identity_t<put_piece<T>>> pieces,
                         std::type_identity_t<T> scale = T(1)) {
    for (const auto& piece : pieces) change(piece.to, piece.n, by_accumulate<T>);
    far::accumulate_pieces<T>(pieces, scale);
  }

  /// Flushes `n` elements' rank if an operation on them that begins now could overtake an earlier
  /// one. One-sided. At most 1 flush.
  template <class T>
  void settle(ptr<T> at, std::size_t n) {
    if (!targets_.empty()) settle(at.rank(), range_of(at, n, by_put));
  }
  /// Notes a put of `n` elements that was made, or begun, otherwise. Local; no communication.
  template <class T>
  void note_put(ptr<T> at, std::size_t n) {
    note(at, n, by_put);
  }

  /// As far::flush. One-sided. 1 flush.
  void flush(rank_t rank) {
    if (!targets_.empty()) targets_[rank].count = 0;
    far::flush(rank);
  }
  /// As far::flush, for all ranks. One-sided. 1 flush.
  void flush() {
    for (target& t : targets_) t.count = 0;
    far::flush();
  }
  /// How often it has flushed to keep an order. Local; no communication.
  std::uint64_t flushes() const { return flushes_; }

 private:
  using kind = const void*;  // accumulates of one type have one address
  static constexpr kind by_put = nullptr;
  template <class C>
  static constexpr char mark = 0;
  template <class T>
  static constexpr kind by_accumulate = &mark<detail::component_of<T>>;

  struct range {
    std::size_t begin, end;
    kind by;
  };
  struct target {
    std::array<range, 4> changed{};
    std::size_t count = 0;
  };

  template <class T>
  static range range_of(ptr<T> at, std::size_t n, kind by) {
    return {at.offset(), at.offset() + n * sizeof(T), by};
  }
  static bool commutes(const range& a, const range& b) { return a.by == b.by && a.by != by_put; }

  void settle(rank_t rank, const range& next) {
    target& t = targets_.at(rank);
    for (std::size_t i = 0; i < t.count; ++i) {
      const range& r = t.changed[i];
      if (r.begin >= next.end || next.begin >= r.end || commutes(r, next)) continue;
      if (FARSIDE_MUTANT(hazard_not_flushed)) continue;
      t.count = 0;
      ++flushes_;
      return far::flush(rank);
    }
  }
  void note(rank_t rank, const range& next) {
    target& t = targets_.at(rank);
    if (next.begin == next.end) return;
    for (std::size_t i = 0; i < t.count; ++i) {
      range& r = t.changed[i];
      if (r.by != next.by || r.begin > next.end || next.begin > r.end) continue;
      r.begin = std::min(r.begin, next.begin);
      r.end = std::max(r.end, next.end);
      return;
    }
    if (t.count < t.changed.size()) {
      t.changed[t.count++] = next;
      return;
    }
    range& all = t.changed[0];
    all.by = by_put;  // of several kinds, which nothing commutes with
    for (const range& r : t.changed) {
      all.begin = std::min({all.begin, r.begin, next.begin});
      all.end = std::max({all.end, r.end, next.end});
    }
    t.count = 1;
  }

  template <class T>
  void note(ptr<T> at, std::size_t n, kind by) {
    if (!targets_.empty()) note(at.rank(), range_of(at, n, by));
  }
  template <class T>
  void change(ptr<T> at, std::size_t n, kind by) {
    if (targets_.empty()) return;
    range next = range_of(at, n, by);
    settle(at.rank(), next);
    note(at.rank(), next);
  }
  template <class T>
  void change_strided(ptr<T> at, const strided& shape, kind by) {
    if (targets_.empty()) return;
    detail::stride_levels levels("in_order", shape);
    std::ptrdiff_t low = 0, high = 0;
    std::ptrdiff_t dense = 1;
    for (std::size_t i = 0; i < shape.counts.size(); ++i) {
      if (shape.counts[i] == 0) return;
      std::ptrdiff_t stride = i == 0                          ? 1
                              : shape.far_strides.size() == 0 ? dense
                                                              : shape.far_strides[i - 1];
      std::ptrdiff_t reach = stride * (shape.counts[i] - 1);
      (reach < 0 ? low : high) += reach;
      dense *= shape.counts[i];
    }
    change(at + low, static_cast<std::size_t>(high - low + 1), by);
  }

  std::vector<target> targets_;  ///< by rank; empty where memory is coherent
  std::uint64_t flushes_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND
