// Iterators over the entries of a hash map: those of one member, or of all, one after another.
#pragma once

#include <farside/containers/detail/copying_iterator.hpp>
#include <farside/containers/detail/map/map_core.hpp>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// An entry that is there all the time is seen once; one that comes, goes or changes meanwhile is
/// seen or not, with one of its values. It reads the table that its member had when it came there,
/// also while that moves to another, and may not be kept over a barrier.
template <class Core>
class entry_walk {
  using K = typename Core::K;
  using V = typename Core::V;

 public:
  using value_type = std::pair<K, V>;

  entry_walk() = default;
  entry_walk(Core& of, rank_t member, rank_t count) : of_(&of), member_(member), left_(count) {}

  std::optional<value_type> next() {
    while (true) {
      if (table_ == nullptr || index_ == table_->capacity) {
        if (left_ == 0) return std::nullopt;
        next_member();
      }
      if (auto entry = entry_at(index_++)) return entry;
    }
  }
  friend bool operator==(const entry_walk& a, const entry_walk& b) {
    return a.table_ == b.table_ && a.index_ == b.index_;
  }

 private:
  void next_member() {
    --left_;
    table_ = &settled(*of_, member_);
    buckets_.clear();
    member_ = member_ + 1 < of_->members.size() ? member_ + 1 : 0;
    index_ = 0;
  }

  std::optional<value_type> entry_at(word i) {
    using entry = typename Core::entry;
    return of_->with_access(*table_, [&](auto& in) -> std::optional<value_type> {
      if constexpr (std::remove_reference_t<decltype(in)>::is_far) {  // many buckets a get
        if (i >= first_ + buckets_.size() || buckets_.empty()) {
          first_ = i;
          buckets_.resize(std::min(largest_window<entry>, table_->capacity - i));
          get(table_->bucket_at(i, in.words), reinterpret_cast<word*>(buckets_.data()),
              buckets_.size() * in.words);
        }
        in.have(i, 1, &buckets_[i - first_]);
      }
      while (true) {
        entry e;
        const head h = in.top(i);
        if (h.what() == state::empty) return std::nullopt;
        if (in.template read<if_blocked::wait>(i, h, e) == read_result::whole) {
          auto key = Core::traits::key_store::unpack(e.key());
          bool again = !key;
          std::optional<V> value;
          if (key && h.moved())
            value = of_->template find<if_blocked::wait>(*key, concurrency::everything).value;
          else if (key)
            value = value_in<typename Core::traits>(e, again);
          if (!again && !value) return std::nullopt;
          if (!again) return value_type(*std::move(key), *std::move(value));
        }
        in.forget();
        of_->c.wait_round();
      }
    });
  }

  Core* of_ = nullptr;
  rank_t member_ = 0;
  rank_t left_ = 0;
  table* table_ = nullptr;
  word index_ = 0;
  word first_ = 0;
  std::vector<typename Core::entry> buckets_;
};
template <class Core>
using iterator = copying_iterator<entry_walk<Core>>;

}  // namespace far::inline FARSIDE_BACKEND::detail::map
