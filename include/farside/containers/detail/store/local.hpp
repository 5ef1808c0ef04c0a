// The entries of a store that this rank holds, where they lie.
#pragma once

#include <farside/containers/detail/map/growth.hpp>
#include <farside/containers/detail/store/store_core.hpp>

#include <exception>
#include <iterator>
#include <optional>

namespace far::inline FARSIDE_BACKEND::detail::stores {

/// An entry of this rank's own: what is written to its value is in the store.
template <class K, class V>
struct local_entry {
  const K& key;
  V& value;
};

/// Goes over this rank's own buckets. Where memory is coherent it refers to the values where they
/// lie. Elsewhere they lie masked with their version: it has a copy of the one it points to, and
/// stores that, as a change of its own, when it goes on and the copy was changed.
template <class Core>
class local_iterator {
  using T = typename Core::T;
  using K = typename Core::K;
  using Value = typename Core::value_type;
  using layout = object<Value>;
  using form = typename map::stored<Value>;

  static constexpr bool has_own_form = plain<Value> && alignof(Value) <= 16;

 public:
  using value_type = local_entry<K, Value>;
  using difference_type = std::ptrdiff_t;
  using reference = value_type;
  using pointer = void;
  using iterator_category = std::input_iterator_tag;

  local_iterator() = default;  ///< the end
  explicit local_iterator(Core& of) : of_(&of), table_(&own_table(of)), changes_(of.changes) {
    next();
  }
  local_iterator(const local_iterator& from)
      : of_(from.of_), table_(from.table_), index_(from.index_), changes_(from.changes_) {
    if (of_ != nullptr) index_ -= from.now_ != nullptr, next();
  }
  local_iterator& operator=(const local_iterator&) = delete;
  /// Throws if a changed copy has no room, unless an exception is on its way already.
  ~local_iterator() noexcept(false) {
    if (std::uncaught_exceptions() == unwinding_) store_back();
  }

  reference operator*() const {
    check();
    return {*key_, *now_};
  }
  local_iterator& operator++() {
    check();
    store_back();
    next();
    return *this;
  }
  friend bool operator==(const local_iterator& a, const local_iterator& b) {
    return a.of_ == b.of_ && (a.of_ == nullptr || a.index_ == b.index_);
  }

 private:
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

  void next() {
    now_ = nullptr;
    copy_.reset();
    for (; index_ < table_->capacity; ++index_) {
      const quick found = load_quickly(index_);
      if (found == quick::entry || (found == quick::unclear && load(index_))) {
        ++index_;
        return;
      }
    }
    of_ = nullptr;
  }

  enum class quick { entry, nothing, unclear };

  /// What nearly every bucket is, where this process reaches its words: empty, or one that is whole and
  /// not about to move, whose value is referred to where it lies. Else nothing has been decided.
  FARSIDE_HOT quick load_quickly(word i) {
    constexpr bool refers = has_own_form && T::key_store::in_place &&
                            (Core::in_bucket || (layout::fixed && layout::cells == 0));
    if constexpr (!refers) {
      return quick::unclear;
    } else {
      if (table_->direct == nullptr) return quick::unclear;
      word* bucket = table_->direct + i * T::bucket_words;
      const head h(map::load_relaxed(bucket[0]));
      if (h.raw() == 0) return quick::nothing;
      if (h.what() != map::state::plain || h.frozen() || h.moved() ||
          map::atomic(bucket[1]).load(std::memory_order_acquire) != h.version())
        return quick::unclear;
      if (map::load_relaxed(bucket[2]) & 1) return quick::nothing;  // parked
      key_.emplace(T::key_store::read(bucket + 2 + T::value_store::words));
      if constexpr (Core::in_bucket) {
        now_ = reinterpret_cast<Value*>(bucket + 2 + 1);
      } else {
        word* base = reach(of_->c, {ptr<word>::from_raw(map::load_relaxed(bucket[3])), 0});
        if (head(map::load_relaxed(*base)).what() != live) return quick::nothing;
        now_ = reinterpret_cast<Value*>(base + layout::body_at);
      }
      return quick::entry;
    }
  }

  /// Whether there is an entry in bucket `i`.
  bool load(word i) {
    uncounted own(of_->c);  // memory of this rank's
    return of_->with_access(*table_, [&](auto& in) {
      const head h = in.top(i);
      if (h.what() != map::state::plain) return false;
      typename Core::entry e;
      if (in.template read<if_blocked::wait>(i, h, e) != map::read_result::whole) {
        in.forget();
        return load(i);
      }
      const auto slot = *T::value_store::unpack(e.value());
      if (slot.is_parked()) return false;
      auto key = T::key_store::unpack(e.key());
      if (!key) return false;
      key_ = std::move(key);
      if constexpr (Core::in_bucket) {
        if constexpr (has_own_form)
          if (table_->direct != nullptr) {
            word* value = table_->direct + i * T::bucket_words + 2 + 1;
            now_ = reinterpret_cast<Value*>(value);
            return true;
          }
        keep_copy(form::read(slot.words.data()));
        return true;
      } else {
        const place at = Core::place_in(slot);
        if constexpr (layout::fixed && has_own_form && layout::cells == 0)
          if (of_->c.link.coherent()) {
            word* base = reach(of_->c, at);
            if (head(map::load_relaxed(*base)).what() != live) return false;
            now_ = reinterpret_cast<Value*>(base + layout::body_at);
            return true;
          }
        object_image image;
        if (read_object<if_blocked::wait, Value>(of_->c, at, image) != seen::whole || image.erasing)
          return false;
        keep_copy(layout::value_in(image.words.get()));
        return true;
      }
    });
  }

  void keep_copy(Value value) {
    before_ = image_of(value);
    copy_.emplace(std::move(value));
    now_ = &*copy_;
  }
  static std::vector<std::byte> image_of(const Value& value) { return to_bytes(value); }
  void store_back() {
    if (!copy_ || of_ == nullptr || image_of(*copy_) == before_) return;
    if constexpr (layout::cells != 0) store_cells();
    of_->template replace_value<if_blocked::wait>(*key_, *copy_);
    copy_.reset();
  }
  /// Cells are changed by what was added to the copy.
  void store_cells() {
    const Value before = from_bytes<Value>(before_);
    layout::each_cell([&](std::size_t i, auto member) {
      const auto more = (*copy_).*member - before.*member;
      if (more != 0)
        of_->with_cell(*key_, i, [&](ptr<word> at) {
          return fetch_add(at, static_cast<word>(static_cast<std::int64_t>(more)));
        });
    });
  }

  Core* of_ = nullptr;
  map::table* table_ = nullptr;
  word index_ = 0;
  word changes_ = 0;
  std::optional<K> key_;
  std::optional<Value> copy_;
  std::vector<std::byte> before_;
  Value* now_ = nullptr;
  int unwinding_ = std::uncaught_exceptions();
};

template <class Core>
struct local_range {
  Core& of;
  local_iterator<Core> begin() const { return local_iterator<Core>(of); }
  local_iterator<Core> end() const { return {}; }
};

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
