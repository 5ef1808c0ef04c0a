// The ways to the buckets of a table. All of them offer the same (bucket_access), so that the
// protocol is written once, in probe.hpp and update.hpp:
//
//   direct_access   loads, stores and CPU atomics, where memory is coherent
//   local_access    the owner's own loads and stores, while nobody else is there
//                   (concurrency::owner_only)
//   far_access      gets, puts and far atomics; a window of buckets a get (far_access.hpp)
#pragma once

#include <farside/containers/detail/map/table.hpp>
#include <farside/containers/detail/map/traits.hpp>
#include <farside/core/rma.hpp>

#include <algorithm>
#include <concepts>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// What reading a bucket came to. `whole`: the copy is all of one version, that of the head given.
/// `changed`: the head has become another one.
enum class read_result { whole, changed, blocked };

/// What finding needs.
template <class A, class T>
concept bucket_reader = requires(A& in, word index, head h, typename T::entry& copy) {
  { in.capacity() } -> std::same_as<word>;
  { in.top(index) } -> std::same_as<head>;             ///< the head of a bucket, in no order
  { in.is_still_empty(index) } -> std::same_as<bool>;  ///< the same in order, of an empty one
  { in.template read<if_blocked::wait>(index, h, copy) } -> std::same_as<read_result>;
  in.forget();                                  ///< what was read of the table before
  { A::is_fast } -> std::convertible_to<bool>;  ///< declines what seldom happens
};

inline constexpr word at_head = 0, at_value = 2;  ///< words of a bucket that atomics change

/// What changing needs. Whoever wins a head writes the body, and settles what ends with an atomic.
template <class A, class T>
concept bucket_access = bucket_reader<A, T> && requires(A& in, word index, head h, word& seen,
                                                        typename T::entry& body) {
  { A::is_far } -> std::convertible_to<bool>;
  /// Whether a word was `seen` and is now another; else `seen` becomes what it is.
  { in.change(index, at_head, seen, seen) } -> std::same_as<bool>;
  { in.add_to_cell(index, seen) } -> std::same_as<word>;  ///< what it was before
  in.write(index, h, body, true);  ///< value, and if `fresh` key, of a head won; complete
  in.settle();                     ///< gets that begin later see the last atomic
};

/// Whether a head was `expected` and is now `desired`; else `expected` becomes what it is.
template <class Access>
FARSIDE_HOT inline bool change_head(Access& in, word i, head& expected, head desired) {
  word seen = expected.raw();
  const bool won = in.change(i, at_head, seen, desired.raw());
  expected = head(seen);
  return won;
}

/// Buckets by loads, stores and CPU atomics. The fast path is without a context: it waits for
/// nobody, and is closed while somebody counts. Elsewhere what each access stands for is counted.
///
/// Order. Heads are loaded relaxed. A bucket that another key has taken is that key's for good, and
/// one that is the key's own does not go away, so a head only leads to the load that settles what
/// an operation finds. That load is sequentially consistent: it comes after all that this rank has
/// done before, and before all that it will do. It is
///
///   of a cell           that of its value. The value is stored last (release) and is not zero, and
///                       the key is there for good: the key's words are loaded after it.
///   of a plain bucket   that of its head, once more. Before it come the seal (acquire), value and
///                       key, and an acquire fence. The seal is stored last (release), so a seal of
///                       version v comes with all of v. A writer of v + 1 changes the head first,
///                       and a release fence comes between that and its first store: a reader that
///                       saw any of its words sees the new head in its second look.
///   of an empty bucket  that of its head, once more.
///
/// What changes a bucket is an atomic on the head or the cell. All are sequentially consistent, but
/// for the one that takes an empty bucket: claim_order has the reason.
template <class T, bool Fast>
class direct_access {
  using entry = typename T::entry;

 public:
  static constexpr std::size_t words = T::bucket_words;
  static constexpr bool is_far = false, is_fast = Fast;

  FARSIDE_HOT direct_access(word* buckets, word capacity)
    requires Fast
      : capacity_(capacity), base_(buckets) {}
  direct_access(context& c, const table& t)
    requires(!Fast)
      : capacity_(t.capacity), base_(t.direct), c_(&c), table_(&t) {}

  FARSIDE_HOT word capacity() const { return capacity_; }
  void forget() { first_ = end_ = 0; }

  FARSIDE_HOT head top(word i) {
    if constexpr (!Fast)
      if (c_->counts) [[unlikely]]
        count_window(i);
    return head(load_relaxed(bucket(i)[0]));
  }
  FARSIDE_HOT bool is_still_empty(word i) { return atomic(bucket(i)[0]).load(settles) == 0; }

  template <if_blocked B>
  FARSIDE_HOT read_result read(word i, head h, entry& out) {
    word* at = bucket(i);
    out.head_word = h.raw();
    if (T::cells && h.what() == state::cell) {
      out.body[0] = atomic(at[2]).load(settles);
      if constexpr (Fast) {
        // It declines what is frozen, absent or has not come. The compiler sees that no flag is set.
        if (!cell::simple(out.body[0]) && !FARSIDE_MUTANT(map_fast_despite_flags))
          return read_result::blocked;
        out.body[0] &= cell::low;
      }
      while (!Fast && out.body[0] == 0 && !FARSIDE_MUTANT(map_seal_not_checked)) {
        if constexpr (B == if_blocked::give_up) return read_result::blocked;
        wait_round();
        out.body[0] = atomic(at[2]).load(settles);
      }
      for (std::size_t k = 1; k + 2 < words; ++k) out.body[k] = load_relaxed(at[k + 2]);
      return read_result::whole;
    }
    while (true) {
      const bool sealed = atomic(at[1]).load(std::memory_order_acquire) == h.version() ||
                          FARSIDE_MUTANT(map_seal_not_checked);
      for (std::size_t k = 0; k + 2 < words; ++k) out.body[k] = load_relaxed(at[k + 2]);
      acquire_fence();
      out.head_word = atomic(at[0]).load(settles);
      if (out.head_word != h.raw()) return read_result::changed;
      if (sealed) return read_result::whole;
      if constexpr (B == if_blocked::give_up) return read_result::blocked;
      wait_round();
    }
  }

  FARSIDE_HOT bool change(word i, word which, word& seen, word desired) {
    count(operation::atomic, 8);
    word& at = bucket(i)[which];
    if (which != at_head || seen != 0) return cpu_compare_swap(at, seen, desired);
    // Looks first: the line is needed anyway, and the rest of a probe starts from it.
    seen = load_relaxed(at);
    if (seen != 0) return false;
    if (FARSIDE_MUTANT(map_taken_by_a_store)) return store_relaxed(at, desired), true;
    if (inline_claim(at, desired, claim_order)) return true;
    seen = load_relaxed(at);
    return false;
  }

  FARSIDE_HOT void write(word i, head h, const entry& from, bool fresh, bool complete = true) {
    count(operation::put, sizeof(entry) - 8);
    if (complete) count(operation::flush, 0);
    word* at = bucket(i);
    // For the second look of readers, see above. A bucket that was empty has no earlier version.
    if (!fresh) release_fence();
    for (std::size_t k = 0; fresh && k < entry::key_words; ++k)
      store_relaxed(at[2 + entry::value_words + k], from.key()[k]);
    if (T::cells && h.what() == state::cell)
      return atomic(at[2]).store(from.body[0], publish_order);
    for (std::size_t k = 0; k < entry::value_words; ++k) store_relaxed(at[2 + k], from.body[k]);
    atomic(at[1]).store(h.version(), publish_order);
  }
  FARSIDE_HOT void settle() {}  // atomics on cells and heads are in order with loads that settle

  FARSIDE_HOT word add_to_cell(word i, word step) {
    count(operation::atomic, 8);
    return cpu_fetch<atomic_op::add>(bucket(i)[at_value], step);
  }

 private:
  static constexpr auto settles =
      FARSIDE_MUTANT(map_find_unordered) ? std::memory_order_relaxed : std::memory_order_seq_cst;

  FARSIDE_HOT word* bucket(word i) const { return base_ + i * words; }
  FARSIDE_HOT void count(operation kind, std::size_t bytes) {
    if constexpr (!Fast) note(*c_, kind, table_->rank(), bytes, kind != operation::put);
  }
  /// As a far_access would have fetched them.
  void count_window(word i) {
    if (i >= first_ && i < end_) return;
    const word n = next_window<entry>(end_ - first_);
    first_ = i;
    end_ = std::min(i + n, capacity_);
    note(*c_, operation::get, table_->rank(), (end_ - first_) * sizeof(entry), true);
  }

  word capacity_;
  word* base_;
  context* c_ = nullptr;
  const table* table_ = nullptr;
  word first_ = 0, end_ = 0;
};

/// The owner's own buckets while nobody else is there: no communication and no atomics. What it
/// leaves is what the others expect, after a flush of the owner or a barrier. Its relaxed atomics
/// cost nothing, and tell the thread sanitizer what the promise tells us.
template <class T, bool Fast>
class local_access {
  using entry = typename T::entry;

 public:
  static constexpr std::size_t words = T::bucket_words;
  static constexpr bool is_far = false, is_fast = Fast;

  /// `masks`: the table, where memory is not coherent.
  FARSIDE_HOT local_access(word* buckets, word capacity, const table* masks = nullptr)
      : capacity_(capacity), base_(buckets), masks_(masks) {}

  FARSIDE_HOT word capacity() const { return capacity_; }
  void forget() {}
  FARSIDE_HOT head top(word i) { return head(load_relaxed(bucket(i)[0])); }
  FARSIDE_HOT bool is_still_empty(word) { return true; }
  template <if_blocked B>
  FARSIDE_HOT read_result read(word i, head h, entry& out) {
    out.head_word = h.raw();
    for (std::size_t k = 0; k + 2 < words; ++k) out.body[k] = load_relaxed(bucket(i)[k + 2]);
    if (masks()) out.mask(h, where(i));
    return read_result::whole;
  }
  FARSIDE_HOT bool change(word i, word which, word& seen, word desired) {
    word& at = bucket(i)[which];
    const bool same = load_relaxed(at) == seen;
    same ? store_relaxed(at, desired) : void(seen = load_relaxed(at));
    return same;
  }
  FARSIDE_HOT word add_to_cell(word i, word step) {
    word& at = bucket(i)[at_value];
    const word old = load_relaxed(at);
    store_relaxed(at, old + step);
    return old;
  }
  FARSIDE_HOT void write(word i, head h, entry from, bool fresh, bool = true) {
    if (masks()) from.mask(h, where(i));
    store_relaxed(bucket(i)[1], masks() ? from.right_seal(h, where(i)) : h.version());
    const std::size_t n = entry::value_words + (fresh ? entry::key_words : 0);
    for (std::size_t k = 0; k < n; ++k) store_relaxed(bucket(i)[2 + k], from.body[k]);
  }
  FARSIDE_HOT void settle() {}

 private:
  FARSIDE_HOT bool masks() const { return !Fast && masks_ != nullptr; }
  word where(word i) const { return masks_->bucket_at(i, words).raw(); }
  FARSIDE_HOT word* bucket(word i) const { return base_ + i * words; }

  word capacity_;
  word* base_;
  const table* masks_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map
