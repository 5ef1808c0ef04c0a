// Iterators over the entries of a hash map: those of one member, or of all, one after another.
#pragma once

#include <farside/containers/detail/map/map_core.hpp>

#include <iterator>

namespace far::inline FARSIDE_BACKEND::detail::map {

/// An input iterator; what it points to is a copy. An entry that is there all the time is seen
/// once; one that comes, goes or changes meanwhile is seen or not, with one of its values. It reads
/// the table that its member had when it came there, also while that moves to another, and may not
/// be kept over a barrier.
template <class Core>
class iterator {
  using K = typename Core::K;
  using V = typename Core::V;

 public:
  using value_type = std::pair<K, V>;
  using difference_type = std::ptrdiff_t;
  using reference = const value_type&;
  using pointer = const value_type*;
  using iterator_category = std::input_iterator_tag;

  iterator() = default;  ///< the end
  /// Begins with `member` and goes on with `count` of them altogether.
  iterator(Core& of, rank_t member, rank_t count) : of_(&of), member_(member), left_(count) {
    next_member();
    ++*this;
  }

  reference operator*() const { return *now_; }
  pointer operator->() const { return &*now_; }
  iterator& operator++() {
    now_.reset();
    while (of_ != nullptr && !now_) {
      if (index_ < table_->capacity)
        now_ = entry_at(index_++);
      else
        next_member();
    }
    return *this;
  }
  iterator operator++(int) {
    iterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const iterator& a, const iterator& b) {
    return a.of_ == b.of_ && (a.of_ == nullptr || (a.table_ == b.table_ && a.index_ == b.index_));
  }

 private:
  void next_member() {
    if (left_ == 0) {
      of_ = nullptr;
      return;
    }
    --left_;
    table_ = &settled(*of_, member_);
    buckets_.clear();
    member_ = member_ + 1 < of_->members.size() ? member_ + 1 : 0;
    index_ = 0;
  }

  std::optional<value_type> entry_at(word i) {
    using entry = typename Core::entry;
    constexpr word many = std::max<word>(1, 4096 / sizeof(entry));
    return of_->with_access(*table_, [&](auto& in) -> std::optional<value_type> {
      if constexpr (std::remove_reference_t<decltype(in)>::is_far) {  // many buckets a get
        if (i >= first_ + buckets_.size() || buckets_.empty()) {
          first_ = i;
          buckets_.resize(std::min(many, table_->capacity - i));
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
  std::optional<value_type> now_;
};

/// A range of such iterators.
template <class Iterator>
struct range {
  Iterator first;
  Iterator begin() const { return first; }
  Iterator end() const { return {}; }
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map
