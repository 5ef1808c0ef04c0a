// The entries of a store that this rank holds, where they lie.
#pragma once

#include <farside/containers/detail/map/growth.hpp>
#include <farside/containers/detail/store/store_core.hpp>

#include <algorithm>
#include <bit>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// An entry of this rank's own: what is written to its value is in the store.
template <class K, class V>
struct local_entry {
  const K& key;
  V& value;
};

/// Goes over this rank's own buckets. Where memory is coherent it refers to keys and values where they
/// lie. Elsewhere values lie masked with their version: it has a copy of the one it points to, and
/// stores that, as a change of its own, when it goes on and the copy was changed.
///
/// Which bucket is taken looks random, and a branch for each would cost more than reading it. So it
/// looks at the heads of 64 buckets without a branch, and then visits those that are taken. What
/// seldom happens is out of line and is given no pointer to the iterator, so that a loop has it in
/// registers.
template <class Core>
class local_iterator {
  using T = typename Core::T;
  using K = typename Core::K;
  using Value = typename Core::value_type;
  using layout = object<Value>;
  using form = stored<Value>;

  template <class X>
  static constexpr bool has_own_form = plain<X> && alignof(X) <= 16;
  /// Whether keys and values are as they lie in buckets and objects.
  static constexpr bool refers = has_own_form<Value> && plain<K> && alignof(K) <= 8 &&
                                 (Core::in_bucket || (layout::fixed && layout::cells == 0));

 public:
  using value_type = local_entry<K, Value>;
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  using pointer = void;
  using iterator_category = std::input_iterator_tag;

  local_iterator() = default;  ///< the end
  explicit local_iterator(Core& of) : of_(&of), table_(&own_table(of)), changes_(of.changes) {
    left_ = taken_from(*table_, 0);
    next();
  }
  local_iterator(const local_iterator& from)
      : of_(from.of_),
        table_(from.table_),
        first_(from.first_),
        left_(from.left_),
        index_(from.index_),
        changes_(from.changes_) {
    if (of_ != nullptr && !show(index_)) next();
  }
  local_iterator& operator=(const local_iterator&) = delete;
  /// Throws if a changed copy has no room, unless an exception is on its way already.
  ~local_iterator() noexcept(false) {
    if (copy_ && std::uncaught_exceptions() == unwinding_) store_back();
  }

  reference operator*() const {
    check();
    return {*key_, *now_};
  }
  local_iterator& operator++() {
    check();
    if (copy_) store_back();
    next();
    return *this;
  }
  friend bool operator==(const local_iterator& a, const local_iterator& b) {
    return a.of_ == b.of_ && (a.of_ == nullptr || a.index_ == b.index_);
  }

 private:
  /// The key of an entry, and its value if that lies elsewhere than it is seen.
  struct copied {
    K key;
    std::optional<Value> value{};
    std::vector<std::byte> before{};  ///< of the value
    Value* now = nullptr;
  };

  static map::table& own_table(Core& of) {
    uncounted own(of.c);
    return map::settled(of, of.members.rank());
  }
  void check() const {
    if (FARSIDE_CHECKED && of_->changes != changes_)
      raise(of_->full_name(),
            ": an iterator of local() was used after this rank had put or erased an entry. What it "
            "refers to may be gone: begin again, or collect the keys first.");
  }

  /// Which of 64 buckets, or of those that there are from `first` on, need a look.
  FARSIDE_HOT static word taken_from(const map::table& t, word first) {
    const word n = std::min<word>(64, t.capacity - first);
    if (t.direct == nullptr) return ~word{0} >> (64 - n);
    const word* heads = t.direct + first * T::bucket_words;
    word taken = 0;
    for (word i = 0; i < n; ++i) taken |= word{load_relaxed(heads[i * T::bucket_words]) != 0} << i;
    return taken;
  }

  FARSIDE_HOT void next() {
    while (true) {
      while (left_ == 0) {
        first_ += 64;
        if (first_ >= table_->capacity) {
          of_ = nullptr;
          return copy_.reset();
        }
        left_ = taken_from(*table_, first_);
      }
      index_ = first_ + static_cast<word>(std::countr_zero(left_));
      left_ &= left_ - 1;
      if (show(index_)) return;
    }
  }

  /// Whether there is an entry in bucket `i`, which is then the one that this points to. Nearly every
  /// bucket that is taken is whole and not about to move.
  FARSIDE_HOT bool show(word i) {
    if constexpr (refers) {
      word* bucket = table_->direct + i * T::bucket_words;
      if (table_->direct != nullptr && is_whole(bucket)) [[likely]] {
        if (load_relaxed(bucket[2]) & 1) return false;  // parked
        if constexpr (Core::in_bucket) {
          now_ = reinterpret_cast<Value*>(bucket + 2 + 1);
        } else {
          now_ = live_at(*of_, {ptr<word>::from_raw(load_relaxed(bucket[3])), 0});
          if (now_ == nullptr) return false;
        }
        key_ = reinterpret_cast<const K*>(bucket + 2 + T::value_store::words);
        if (copy_) copy_.reset();
        return true;
      }
    }
    copy_ = copy_of(*of_, *table_, i);
    if (!copy_) return false;
    key_ = &copy_->key;
    now_ = copy_->now;
    return true;
  }
  FARSIDE_HOT static bool is_whole(word* bucket) {
    const head h(load_relaxed(bucket[0]));
    return (h.raw() & head::state_and_flags) == static_cast<word>(map::state::plain) &&
           map::atomic(bucket[1]).load(std::memory_order_acquire) == h.version();
  }
  /// The value of an object where memory is coherent, unless it is being erased.
  FARSIDE_HOT static Value* live_at(Core& of, const place& at) {
    word* base = reach(of.c, at);
    if (head(load_relaxed(*base)).what() != live) return nullptr;
    return reinterpret_cast<Value*>(base + layout::body_at);
  }

  /// The entry of bucket `i`, if there is one, by the full path.
  [[gnu::noinline]] static std::unique_ptr<copied> copy_of(Core& of, map::table& t, word i) {
    uncounted own(of.c);  // memory of this rank's
    return of.with_access(t, [&](auto& in) -> std::unique_ptr<copied> {
      typename Core::entry e;
      while (true) {
        const head h = in.top(i);
        if (h.what() != map::state::plain) return nullptr;
        if (in.template read<if_blocked::wait>(i, h, e) == map::read_result::whole) break;
        in.forget();
      }
      const auto slot = *T::value_store::unpack(e.value());
      if (slot.is_parked()) return nullptr;
      auto key = T::key_store::unpack(e.key());
      if (!key) return nullptr;
      auto result = std::make_unique<copied>(copied{*std::move(key)});
      if constexpr (Core::in_bucket) {
        if (has_own_form<Value> && t.direct != nullptr)
          result->now = reinterpret_cast<Value*>(t.direct + i * T::bucket_words + 2 + 1);
        else
          keep_copy(*result, form::read(slot.words.data()));
      } else {
        const place at = Core::place_in(slot);
        if constexpr (layout::fixed && has_own_form<Value> && layout::cells == 0)
          if (of.c.link.coherent()) {
            result->now = live_at(of, at);
            return result->now != nullptr ? std::move(result) : nullptr;
          }
        object_image image;
        if (read_object<if_blocked::wait, Value>(of.c, at, image) != seen::whole || image.erasing)
          return nullptr;
        keep_copy(*result, layout::value_in(image.words.get()));
      }
      return result;
    });
  }
  static void keep_copy(copied& to, Value value) {
    to.before = to_bytes(value);
    to.value.emplace(std::move(value));
    to.now = &*to.value;
  }

  void store_back() {
    if (of_ != nullptr) store_back(*of_, *std::exchange(copy_, nullptr));
  }
  [[gnu::noinline]] static void store_back(Core& to, const copied& from) {
    if (!from.value || to_bytes(*from.value) == from.before) return;
    if constexpr (layout::cells != 0) store_cells(to, from);
    to.template replace_value<if_blocked::wait>(from.key, *from.value);
  }
  /// Cells are changed by what was added to the copy.
  static void store_cells(Core& to, const copied& from) {
    const Value before = from_bytes<Value>(from.before);
    layout::each_cell([&](std::size_t i, auto member) {
      const auto more = (*from.value).*member - before.*member;
      if (more != 0)
        to.with_cell(from.key, i, [&](ptr<word> at) {
          return fetch_add(at, static_cast<word>(static_cast<std::int64_t>(more)));
        });
    });
  }

  Core* of_ = nullptr;
  map::table* table_ = nullptr;
  word first_ = 0;  ///< of 64 buckets
  word left_ = 0;   ///< which of those are still to be visited
  word index_ = 0;  ///< of the bucket that this points to
  word changes_ = 0;
  const K* key_ = nullptr;
  Value* now_ = nullptr;
  std::unique_ptr<copied> copy_;
  int unwinding_ = std::uncaught_exceptions();
};

template <class Core>
struct local_range {
  Core& of;
  local_iterator<Core> begin() const { return local_iterator<Core>(of); }
  local_iterator<Core> end() const { return {}; }
};

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
