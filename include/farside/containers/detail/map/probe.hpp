// Finding a key in one table: the protocol of docs/protocols/hash_map.md, over any way to the
// buckets. The fast path (fast_path.hpp), the full path and handlers of messages (map_core.hpp) are
// instantiations of the same functions.
#pragma once

#include <farside/containers/detail/map/access.hpp>
#include <farside/containers/detail/map/update_kinds.hpp>

#include <optional>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// Walks along the buckets in which a key may be.
template <class T>
class probe_cursor {
 public:
  FARSIDE_HOT probe_cursor(word home, word capacity)
      : capacity_(capacity), home_(home), index_(home) {}
  FARSIDE_HOT word index() const { return index_; }
  FARSIDE_HOT bool at_home() const { return index_ == home_; }
  /// Goes one bucket on from the home if it shall, of linear probing without a branch.
  FARSIDE_HOT void next_if(bool go) {
    if constexpr (T::linear) {
      index_ += go;
      index_ = index_ == capacity_ ? 0 : index_;
    } else if (go) {
      next();
    }
  }
  /// Undoes that.
  FARSIDE_HOT void go_home_if(bool go) {
    index_ = go ? home_ : index_;
    step_ = go ? 0 : step_;
  }
  /// False: it has been at all of them.
  FARSIDE_HOT bool next() {
    if constexpr (T::linear) {
      if (++index_ == capacity_) index_ = 0;
      return index_ != home_;
    } else {
      index_ = T::probing::at(home_, ++step_, capacity_);
      return step_ < capacity_ + T::probing::extra;
    }
  }

 private:
  word capacity_, home_, index_, step_ = 0;  ///< `step_`: of other than linear probing
};

/// Where a probe ended.
template <class T>
struct lookup {
  result what;
  word index = 0;
  bool at_home = false;
  head seen{};                  ///< of an empty bucket: zero
  typename T::entry content{};  ///< of the key's bucket
};

/// The first step of a probe, and the head of the bucket where it leads. Most keys are in their
/// home or in the bucket after it. Nobody can predict in which, so the step is taken without a
/// branch, and past an empty home, too: that says that the key is not here, and no bucket behind it
/// is the key's. Where the step finds nothing the probe begins at the home.
template <class T, class Access>
FARSIDE_HOT inline head first_step(Access& in, probe_cursor<T>& at, std::uint32_t wanted) {
  const head home = in.top(at.index());
  at.next_if(FARSIDE_MUTANT(map_own_bucket_passed) ? home.raw() > 8 : home.differs(wanted));
  const head h = in.top(at.index());
  if (h.is_usual(wanted)) [[likely]]
    return h;
  const bool ends_at_home = home.never_taken();
  at.go_home_if(ends_at_home);
  return ends_at_home ? home : h;
}

/// The first bucket in the probe sequence that is the key's, or empty: from the bucket on where `at`
/// is, whose head is `h`.
template <if_blocked B, class T, bucket_reader<T> Access>
FARSIDE_HOT inline lookup<T> probe(Access& in, probe_cursor<T> at, head h, std::uint32_t wanted,
                                   const typename T::key_type& key) {
  lookup<T> found;
  auto ends_as = [&](result what) __attribute__((always_inline)) -> lookup<T>& {
    found.what = what;
    found.index = at.index();
    found.at_home = at.at_home();
    return found;
  };
  for (;; h = in.top(at.index())) {
    switch (h.role(wanted)) {
      case role::empty:
        if (!in.is_still_empty(at.index())) continue;
        return ends_as(result::absent);
      case role::blocked:
        if (FARSIDE_MUTANT(map_empty_home_passed)) break;
        return ends_as(result::moved);
      case role::other:
        if (FARSIDE_MUTANT(map_tombstone_reused) && h.what() == state::erased && !h.moved()) {
          found.seen = h;
          return ends_as(result::absent);
        }
        break;
      case role::mine: {
        if constexpr (Access::is_fast) {
          // It declines what has moved, is frozen or erased, or has the other form of a value. The
          // rest need not be looked at again: the compiler sees the state from here on.
          if (!h.is_usual(wanted) && !FARSIDE_MUTANT(map_fast_despite_head))
            return ends_as(result::blocked);
          h = h.in_state(T::usual);
        }
        const read_result copy = in.template read<B>(at.index(), h, found.content);
        if (copy == read_result::changed) continue;
        if (copy == read_result::blocked) return ends_as(result::blocked);
        const auto same = FARSIDE_MUTANT(map_fingerprint_trusted)
                              ? std::optional<bool>(true)
                              : T::key_store::equals(found.content.key(), key);
        if (!same) {  // the bytes of the key were freed meanwhile: its bucket has moved
          if constexpr (B == if_blocked::give_up) return ends_as(result::blocked);
          in.forget();
          wait_round();
          continue;
        }
        if (*same) [[likely]]
          return ends_as(h.moved() ? result::moved : result::mine);
      }
    }
    if (!at.next()) return ends_as(result::full);
  }
}
template <if_blocked B, class T, bucket_reader<T> Access>
FARSIDE_HOT inline lookup<T> probe(Access& in, const key_location& where,
                                   const typename T::key_type& key) {
  const std::uint32_t wanted = where.wanted(T::usual);
  probe_cursor<T> at(where.home(in.capacity()), in.capacity());
  const head h = first_step(in, at, wanted);
  return probe<B, T>(in, at, h, wanted, key);
}

/// The value of a bucket, none if it is erased. `again`: look once more, as its bytes were freed,
/// or it is a cell on its way to the next table: what was added since it was frozen is in the word
/// too.
template <class T>
FARSIDE_HOT inline std::optional<typename T::mapped_type> value_in(const typename T::entry& e,
                                                                   bool& again) {
  again = false;
  const state what = e.top().what();
  if constexpr (T::cells) {
    if (what == state::cell) [[likely]] {
      const word value = e.value()[0];
      again = value & cell::frozen && !FARSIDE_MUTANT(map_frozen_cell_read);
      if (again || value & cell::absent) return std::nullopt;
      return cell::decode<typename T::mapped_type>(value);
    }
  }
  if (what == state::erased) return std::nullopt;
  auto value = T::value_store::unpack(e.value());
  again = !value;
  return value;
}

/// What a find came to in one table: done (there is a value or none), moved, full or blocked.
template <if_blocked B, class T, bucket_reader<T> Access>
FARSIDE_HOT inline outcome_of<T> find_in(Access& in, const key_location& where,
                                         const typename T::key_type& key) {
  const std::uint32_t wanted = where.wanted(T::usual);
  probe_cursor<T> at(where.home(in.capacity()), in.capacity());
  const head near = first_step(in, at, wanted);
  bool again;
  if (Access::is_fast && near.is_usual(wanted)) [[likely]] {
    typename T::entry e;
    if (in.template read<B>(at.index(), near.in_state(T::usual), e) == read_result::whole &&
        *T::key_store::equals(e.key(), key)) [[likely]] {
      auto value = value_in<T>(e, again);
      if (!again) [[likely]]
        return {.value = std::move(value)};
    }
  }
  for (lookup<T> found = probe<B, T>(in, at, near, wanted, key);;
       found = probe<B, T>(in, where, key)) {
    if (found.what == result::mine) [[likely]] {
      auto value = value_in<T>(found.content, again);
      if (!again) [[likely]]
        return {.value = std::move(value)};
    } else {
      return {found.what == result::absent ? result::done : found.what};
    }
    if constexpr (B == if_blocked::give_up) return {result::blocked};
    in.forget();
    wait_round();
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::map
