// Buckets by gets, puts and far atomics.
#pragma once

#include <farside/containers/detail/map/access.hpp>

#include <array>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// What a reader verifies of what a get has brought. The key: a cell of the key looked for has come
/// whole if no word of its key is zero, see bucket::key_shows_all(). Writers verify the seal.
enum class verify { nothing, key, seal };

/// The first buckets in which a key may be, from its home on: those that one get fetches.
template <class T>
struct bucket_window {
  using entry = typename T::entry;

  bucket_window() = default;
  FARSIDE_HOT bucket_window(table& t, const key_location& where)
      : in(&t),
        first(where.home(t.capacity)),
        count(std::min<word>(window<entry>, t.capacity - first)) {}
  FARSIDE_HOT ptr<word> from() const { return in->bucket_at(first, T::bucket_words); }
  FARSIDE_HOT word* to() { return reinterpret_cast<word*>(buckets.data()); }
  FARSIDE_HOT std::size_t words() const { return count * T::bucket_words; }

  table* in = nullptr;
  word first = 0;
  word count = 0;
  std::array<entry, window<entry>> buckets;
};

template <class T>
class far_access {
  using entry = typename T::entry;

 public:
  static constexpr std::size_t words = T::bucket_words;
  static constexpr bool is_far = true, is_fast = false;

  far_access(context& c, const table& t, verify what) : c_(c), table_(t), verify_(what) {}

  /// Uses buckets that have been read already, which stay where they are.
  FARSIDE_HOT void have(word first, word n, entry* read) {
    first_ = first;
    count_ = n;
    window_ = read;
  }
  FARSIDE_HOT word capacity() const { return table_.capacity; }
  void forget() { count_ = 0; }

  /// The head as the window has it.
  FARSIDE_HOT head top(word i) {
    if (i - first_ >= count_) {
      if (count_ != 0 && FARSIDE_MUTANT(map_window_end_passed)) return head();
      fetch(i);
    }
    return window_[i - first_].top();
  }
  FARSIDE_HOT bool is_still_empty(word) { return true; }

  template <if_blocked B>
  FARSIDE_HOT read_result read(word i, head h, entry& out) {
    bool flushed = false;
    while (true) {
      out = window_[i - first_];
      if (out.top() != h) return read_result::changed;
      if (has_come(out, i)) {
        out.mask(h, where(i));
        return read_result::whole;
      }
      if constexpr (B == if_blocked::give_up) return read_result::blocked;
      // What belongs to the head is on its way. So may be something of this rank (copies are
      // completed many at a time), for which whoever is waited for may be waiting.
      if (!std::exchange(flushed, true)) flush(table_.rank());
      wait_round();
      far::get(table_.bucket_at(i, words), reinterpret_cast<word*>(&window_[i - first_]), words);
    }
  }

  bool change(word i, word which, word& seen, word desired) {
    const word was = compare_swap(word_at(i, which), seen, desired);
    return std::exchange(seen, was) == was;
  }
  word add_to_cell(word i, word step) { return fetch_add(word_at(i, at_value), step); }
  /// `from` is masked afterwards.
  void write(word i, head h, entry& from, bool fresh, bool complete = true) {
    from.mask(h, where(i));
    from.seal = from.right_seal(h, where(i));
    const auto* body = reinterpret_cast<const word*>(&from) + 1;
    const std::size_t n = words - 1 - (fresh ? 0 : entry::key_words);
    if (complete && !FARSIDE_MUTANT(map_body_unflushed))
      put_through(word_at(i, 1), body, n);
    else
      put(word_at(i, 1), body, n);
  }

  /// An operation ends with an atomic: gets of others that begin later shall see it, and this
  /// rank's later gets shall come after it. No round trip, as no put is under way, and not counted.
  void settle() { settle(c_, table_.rank()); }
  FARSIDE_HOT static void settle(context& c, rank_t rank) {
    if (!FARSIDE_MUTANT(map_ends_unsettled)) settle_atomics(c.link, rank);
  }

 private:
  ptr<word> word_at(word i, word which) const {
    return table_.bucket_at(i, words) + static_cast<std::ptrdiff_t>(which);
  }
  word where(word i) const { return word_at(i, 0).raw(); }

  FARSIDE_HOT bool has_come(const entry& e, word i) const {
    if (verify_ == verify::nothing) return true;
    if (T::cells && verify_ == verify::key && e.top().what() == state::cell && e.key_shows_all())
      return true;
    return e.is_sealed(where(i));
  }
  void fetch(word i) {
    const word n = std::min(next_window<entry>(count_), table_.capacity - i);
    have(i, n, own_.data());
    far::get(table_.bucket_at(i, words), reinterpret_cast<word*>(window_), n * words);
  }

  context& c_;
  const table& table_;
  verify verify_;
  word first_ = 0, count_ = 0;
  entry* window_ = nullptr;
  std::array<entry, largest_window<entry>> own_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map
