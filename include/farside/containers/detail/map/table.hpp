// A table of buckets in the segment of one member, and the ways to reach it:
//
//   far_access      gets, puts and far atomics; a window of buckets a get
//   direct_access   loads, stores and CPU atomics, where memory is coherent
//   local_access    the owner's own loads and stores, while nobody else is there (concurrency::owner_only)
//
//   | capacity | next | claimed | done | used | dead | block | - |  bucket 0 | bucket 1 | ... |
//   sentinels |
//
// `next` is zero, or where the table lies that this one moves to: set once, and then for good.
// `claimed` and `done` count chunks of buckets that are being moved or have been. `used` and `dead`
// (buckets taken; of those, erased) are added to now and then, and only guide growth.
#pragma once

#include <farside/backend/shared/shared_memory.hpp>
#include <farside/base/cpu_atomics.hpp>
#include <farside/containers/detail/map/bucket.hpp>
#include <farside/core/atomics.hpp>
#include <farside/core/detail/messages/may_not_wait.hpp>
#include <farside/core/memory.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

struct header {
  word capacity = 0, next = 0, claimed = 0, done = 0, used = 0, dead = 0, block = 0, spare = 0;

  static constexpr std::size_t words = 8;
  enum index : std::size_t {
    at_capacity,
    at_next,
    at_claimed,
    at_done,
    at_used,
    at_dead,
    at_block
  };
};

inline constexpr word least_capacity = 8;  ///< of a table, in buckets
inline constexpr word sentinel = 8;        ///< a head after the last bucket: as if moved, empty
inline constexpr word sentinels = 3;       ///< as far as looks ahead of a probe go
inline constexpr word chunk = 256;         ///< buckets that are moved in one go

/// A table as one rank knows it. It stays where it is until no rank can be reading it any more.
struct table {
  word* direct = nullptr;  ///< the first bucket, where memory is coherent
  word* quick = nullptr;   ///< the same for short ways; null where operations may have to be sent
  word capacity = 0;
  ptr<word> at;         ///< its header
  word* own = nullptr;  ///< the first bucket, if it is this rank's own
  std::atomic<table*> next{nullptr};
  std::atomic<bool> settled{false};  ///< all of the table before it has been moved into it

  rank_t rank() const { return at.rank(); }
  word chunks() const { return (capacity + chunk - 1) / chunk; }
  ptr<word> field(header::index which) const { return at + static_cast<std::ptrdiff_t>(which); }
  ptr<word> bucket_at(word index, std::size_t bucket_words) const {
    return at + static_cast<std::ptrdiff_t>(header::words + index * bucket_words);
  }
};

inline std::atomic_ref<word> atomic(word& w) { return std::atomic_ref<word>(w); }

/// A relaxed load, and a relaxed store. Compilers reach what lies behind a pointer in one
/// instruction, but GCC does not do that for atomics on arm64. Words are read and written whole in
/// any case there, and a volatile access stays where it is.
FARSIDE_HOT inline word peek(const word& w) {
#if defined(__aarch64__) && !defined(FARSIDE_TSAN)
  return *const_cast<const volatile word*>(&w);
#else
  return std::atomic_ref<word>(const_cast<word&>(w)).load(std::memory_order_relaxed);
#endif
}
/// The same before all loads that follow.
FARSIDE_HOT inline word peek_first(const word& w) {
  return std::atomic_ref<word>(const_cast<word&>(w)).load(std::memory_order_acquire);
}
FARSIDE_HOT inline void poke(word& w, word value) {
#if defined(__aarch64__) && !defined(FARSIDE_TSAN)
  *const_cast<volatile word*>(&w) = value;
#else
  std::atomic_ref<word>(w).store(value, std::memory_order_relaxed);
#endif
}

inline void release_fence() {
#ifndef FARSIDE_TSAN
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

inline void full_fence() {
#ifndef FARSIDE_TSAN
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Taking a bucket, and storing the word that makes it whole. An operation must come before the
/// next one of its rank (store buffering), so one of the two is sequentially consistent, like the
/// load of a head: the one that is so anyway. On arm64 a relaxed compare-and-swap lets the next
/// operation begin while its line is still on its way; on x86-64 it is a fence in any case, and the
/// store need not be.
#if defined(__aarch64__)
inline constexpr auto claim_order = std::memory_order_relaxed;
inline constexpr auto publish_order = std::memory_order_seq_cst;
#else
inline constexpr auto claim_order = std::memory_order_seq_cst;
inline constexpr auto publish_order = std::memory_order_release;
#endif

/// Tables of up to so many buckets are taken to be in a cache. What is best there and beyond it
/// differs, and neither is much worse than the other where this is wrong.
inline constexpr word in_caches = word{1} << 13;

/// How many buckets a get fetches at first: 256 bytes cost hardly more than 8.
template <class Bucket>
inline constexpr word window = std::clamp<word>(256 / sizeof(Bucket), 1, 8);

/// Whether each atomic ends with a fence of the CPU, as far as this thread's fast links know.
FARSIDE_HOT inline bool atomics_are_fences() {
  return with_fast_link([](const auto& link) {
    if constexpr (knows_its_fences<std::remove_cvref_t<decltype(link)>>)
      return link.flush_is_a_fence();
    else
      return false;
  });
}

/// A back end may have a cheaper way than flush to do what far_access::settle() asks for.
template <class Link>
FARSIDE_HOT inline void settle_atomics(Link& link, rank_t rank) {
  if (atomics_are_fences()) return;
  if constexpr (settles_atomics<Link>)
    link.settle(rank);
  else
    link.flush(rank);
}

/// Buckets by gets, puts and far atomics.
template <class Bucket>
class far_access {
 public:
  static constexpr std::size_t words = sizeof(Bucket) / 8;
  static constexpr bool is_far = true;

  far_access(context& c, const table& t) : c_(c), table_(t) {}

  /// Uses a window that has been read already.
  void have(word first, const Bucket* read, word n) {
    first_ = first;
    count_ = std::min<word>(n, small_.size());
    std::copy_n(read, count_, small_.data());
    window_ = small_.data();
  }
  void forget() { count_ = 0; }

  /// The head as the window has it.
  head top(word i) {
    if (i < first_ || i >= first_ + count_) fetch(i);
    return window_[i - first_].top();
  }

  /// True: `out` is all of one version, that of head `h`. False: its head has become out.top().
  bool read(word i, head h, Bucket& out) {
    bool flushed = false;
    while (true) {
      out = window_[i - first_];
      if (out.top() != h) return false;
      if (out.is_sealed(where(i))) {
        out.mask(h, where(i));
        return true;
      }
      // What belongs to the head is on its way. So may be something of this rank (copies are
      // completed many at a time), for which whoever is waited for may be waiting.
      if (!std::exchange(flushed, true)) flush(table_.rank());
      wait_or_throw(c_);
      far::get(table_.bucket_at(i, words), reinterpret_cast<word*>(&window_[i - first_]), words);
    }
  }

  /// The same where nobody writes.
  head top_quiet(word i) { return top(i); }
  void read_quiet(word i, Bucket& out) const {
    out = window_[i - first_];
    out.mask(out.top(), where(i));
  }

  /// Whether the head was `expected` and is now `desired`; else `expected` becomes what it is.
  bool change(word i, head& expected, head desired) {
    head seen(compare_swap(table_.bucket_at(i, words), expected.raw(), desired.raw()));
    if (seen == expected) return true;
    expected = seen;
    return false;
  }
  bool take_if_empty(word i, head desired) {
    head expected;
    return change(i, expected, desired);
  }

  /// Value, and if `fresh` key, of a head that this rank has just won.
  void write(word i, head h, Bucket from, bool fresh) {
    write(table_.bucket_at(i, words), h, from, fresh, false);
  }
  /// The same, complete on return.
  void write_through(word i, head h, Bucket from, bool fresh) {
    write_through(table_.bucket_at(i, words), h, from, fresh);
  }
  /// The same at `at`; `from` is masked afterwards.
  [[gnu::always_inline]] static void write_through(ptr<word> at, head h, Bucket& from, bool fresh) {
    write(at, h, from, fresh, !FARSIDE_MUTANT(map_body_unflushed));
  }
  /// Completes what was written.
  void complete() {
    if (!FARSIDE_MUTANT(map_body_unflushed)) flush(table_.rank());
  }

  /// An operation ends with an atomic: gets of others that begin later shall see it, and this
  /// rank's later gets shall come after it. No round trip, as no put is under way, and not counted.
  void settle() { settle(c_, table_.rank()); }
  FARSIDE_HOT static void settle(context& c, rank_t rank) {
    if (!FARSIDE_MUTANT(map_ends_unsettled)) settle_atomics(c.link, rank);
  }

  /// Whether a cell was `expected` and is now `desired`; else `expected` becomes what it is.
  bool change_cell(word i, word& expected, word desired) {
    word seen = compare_swap(table_.bucket_at(i, words) + 2, expected, desired);
    if (seen == expected) return true;
    expected = seen;
    return false;
  }
  word add_to_cell(word i, word step) { return fetch_add(table_.bucket_at(i, words) + 2, step); }

  word where(word i) const { return table_.bucket_at(i, words).raw(); }

 private:
  [[gnu::always_inline]] static void write(ptr<word> at, head h, Bucket& from, bool fresh,
                                           bool through) {
    from.mask(h, at.raw());
    from.seal = from.right_seal(h, at.raw());
    auto* body = reinterpret_cast<const word*>(&from) + 1;
    std::size_t n = words - 1 - (fresh ? 0 : Bucket::key_words);
    through ? put_through(at + 1, body, n) : put(at + 1, body, n);
  }
  void fetch(word i) {
    word n = count_ == 0 ? window<Bucket> : std::min<word>(2 * count_, 512 / words);
    n = std::min(std::max<word>(n, 1), table_.capacity - i);
    if (n > small_.size() && large_.size() < n) large_.resize(n);
    window_ = n > small_.size() ? large_.data() : small_.data();
    first_ = i;
    count_ = n;
    far::get(table_.bucket_at(i, words), reinterpret_cast<word*>(window_), n * words);
  }

  context& c_;
  const table& table_;
  word first_ = 0;
  word count_ = 0;
  Bucket* window_ = nullptr;
  std::array<Bucket, window<Bucket>> small_;
  std::vector<Bucket> large_;
};

/// Buckets by loads, stores and CPU atomics. What each access stands for is counted.
///
/// Order. A reader loads the head (sequentially consistent: an insert by this rank, whose
/// compare-and-swap is too, comes before it, and so do its earlier finds).
///
/// Plain: then the seal (acquire), value and key, and the head again after an acquire fence. The
/// seal is stored last (release), so a seal of version v comes with all of v. A writer of v + 1
/// changes the head first, and a release fence comes between that and its first store: a reader
/// that saw any of them sees the new head in its second look.
///
/// Cell: then the value (acquire), which is stored last (release) and is not zero, and the key,
/// which never changes. The value is what it was when it was loaded; if the bucket has moved since,
/// that was before.
template <class Bucket>
class direct_access {
 public:
  static constexpr std::size_t words = sizeof(Bucket) / 8;
  static constexpr bool is_far = false;

  direct_access(context& c, const table& t) : c_(c), table_(t), base_(t.direct) {}

  void forget() { end_ = 0; }

  head top(word i) {
    if (c_.counts) [[unlikely]]
      count_window(i);
    return head(atomic(base_[i * words]).load(std::memory_order_seq_cst));
  }

  bool read(word i, head h, Bucket& out) {
    word* at = base_ + i * words;
    if (h.what() == state::cell) {
      while ((out.body[0] = atomic(at[2]).load(std::memory_order_acquire)) == 0) {
        if (FARSIDE_MUTANT(map_seal_not_checked)) break;
        wait_or_throw(c_);
      }
      for (std::size_t k = 1; k + 2 < words; ++k)
        out.body[k] = atomic(at[k + 2]).load(std::memory_order_relaxed);
      out.head_word = h.raw();
      return true;
    }
    while (true) {
      bool sealed = atomic(at[1]).load(std::memory_order_acquire) == h.version();
      if (sealed || FARSIDE_MUTANT(map_seal_not_checked)) {
        auto* to = reinterpret_cast<word*>(&out);
        for (std::size_t k = 2; k < words; ++k)
          to[k] = atomic(at[k]).load(std::memory_order_relaxed);
        acquire_fence();
      }
      out.head_word = atomic(at[0]).load(std::memory_order_relaxed);
      if (out.top() != h) return false;
      if (sealed || FARSIDE_MUTANT(map_seal_not_checked)) return true;
      wait_or_throw(c_);
    }
  }
  /// The same where nobody writes: nothing needs an order.
  head top_quiet(word i) {
    if (c_.counts) [[unlikely]]
      count_window(i);
    return head(atomic(base_[i * words]).load(std::memory_order_relaxed));
  }
  void read_quiet(word i, Bucket& out) const {
    auto* to = reinterpret_cast<word*>(&out);
    for (std::size_t k = 0; k < words; ++k)
      to[k] = atomic(base_[i * words + k]).load(std::memory_order_relaxed);
  }

  bool change(word i, head& expected, head desired) {
    note(c_, operation::atomic, table_.rank(), 8, true);
    word raw = expected.raw();
    bool won = atomic(base_[i * words]).compare_exchange_strong(raw, desired.raw());
    expected = head(raw);
    return won;
  }
  /// Looks first: the line is needed anyway, and the rest of a probe starts from it.
  bool take_if_empty(word i, head desired) {
    note(c_, operation::atomic, table_.rank(), 8, true);
    word* at = base_ + i * words;
    return atomic(at[0]).load(std::memory_order_relaxed) == 0 && take(at, desired);
  }
  template <bool Sure = false>
  FARSIDE_HOT static bool take(word* at, head desired) {
    return inline_claim<Sure>(at[0], desired.raw(), claim_order);
  }

  void write(word i, head h, Bucket& from, bool fresh) {
    note(c_, operation::put, table_.rank(), sizeof(Bucket) - 8, false);
    store(base_ + i * words, h, from, fresh);
  }
  static void store(word* at, head h, const Bucket& from, bool fresh) {
    if (!fresh)
      release_fence();  // the language asks for it; no CPU has shown us that it is missing
    auto* source = reinterpret_cast<const word*>(&from);
    std::size_t n = words - (fresh ? 0 : Bucket::key_words);
    bool is_cell = h.what() == state::cell;
    for (std::size_t k = is_cell ? 3 : 2; k < n; ++k)
      atomic(at[k]).store(source[k], std::memory_order_relaxed);
    if (is_cell)
      atomic(at[2]).store(source[2], publish_order);
    else
      atomic(at[1]).store(h.version(), publish_order);
  }
  void complete() { note(c_, operation::flush, table_.rank(), 0, true); }
  void write_through(word i, head h, Bucket& from, bool fresh) {
    write(i, h, from, fresh);
    complete();
  }
  void settle() {}  // atomics and loads of heads are sequentially consistent

  bool change_cell(word i, word& expected, word desired) {
    note(c_, operation::atomic, table_.rank(), 8, true);
    return atomic(base_[i * words + 2]).compare_exchange_strong(expected, desired);
  }
  word add_to_cell(word i, word step) {
    note(c_, operation::atomic, table_.rank(), 8, true);
    return atomic(base_[i * words + 2]).fetch_add(step);
  }

 private:
  /// As a far_access would have fetched them.
  void count_window(word i) {
    if (i >= first_ && i < end_) return;
    word n = end_ == 0 ? window<Bucket> : std::min<word>(2 * (end_ - first_), 512 / words);
    first_ = i;
    end_ = std::min(i + std::max<word>(n, 1), table_.capacity);
    note(c_, operation::get, table_.rank(), (end_ - first_) * sizeof(Bucket), true);
  }

  context& c_;
  const table& table_;
  word* base_;
  word first_ = 0, end_ = 0;
};

/// The owner's own buckets while nobody else is there: no communication and no atomics. What it
/// leaves is what the others expect, after a flush of the owner or a barrier.
template <class Bucket>
class local_access {
 public:
  static constexpr std::size_t words = sizeof(Bucket) / 8;
  static constexpr bool is_far = false;

  local_access(context& c, const table& t)
      : coherent_(c.link.coherent()), table_(t), base_(t.own) {}

  void forget() {}
  head top(word i) { return head(load(base_[i * words])); }
  head top_quiet(word i) { return top(i); }
  bool read(word i, head, Bucket& out) {
    read_quiet(i, out);
    return true;
  }
  void read_quiet(word i, Bucket& out) const {
    auto* to = reinterpret_cast<word*>(&out);
    for (std::size_t k = 0; k < words; ++k) to[k] = load(base_[i * words + k]);
    if (!coherent_) out.mask(out.top(), where(i));
  }
  bool change(word i, head& expected, head desired) {
    head now = top(i);
    bool same = now == expected;
    if (same) store(base_[i * words], desired.raw());
    expected = now;
    return same;
  }
  bool take_if_empty(word i, head desired) {
    head expected;
    return change(i, expected, desired);
  }
  void write(word i, head h, Bucket from, bool fresh) {
    if (!coherent_) from.mask(h, where(i));
    from.seal = coherent_ ? h.version() : from.right_seal(h, where(i));
    std::size_t n = words - (fresh ? 0 : Bucket::key_words);
    auto* source = reinterpret_cast<const word*>(&from);
    for (std::size_t k = 1; k < n; ++k) store(base_[i * words + k], source[k]);
  }
  void write_through(word i, head h, const Bucket& from, bool fresh) { write(i, h, from, fresh); }
  void complete() {}
  void settle() {}
  bool change_cell(word i, word& expected, word desired) {
    word now = load(base_[i * words + 2]);
    bool same = now == expected;
    if (same) store(base_[i * words + 2], desired);
    expected = now;
    return same;
  }
  word add_to_cell(word i, word step) {
    word old = load(base_[i * words + 2]);
    store(base_[i * words + 2], old + step);
    return old;
  }

 private:
  word where(word i) const { return table_.bucket_at(i, words).raw(); }

  // Relaxed atomics cost nothing, and say to the thread sanitizer what the promise says to us.
  static word load(word& w) { return atomic(w).load(std::memory_order_relaxed); }
  static void store(word& w, word value) { atomic(w).store(value, std::memory_order_relaxed); }

  bool coherent_;
  const table& table_;
  word* base_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map
