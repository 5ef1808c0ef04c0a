// The allocator of a rank for its own segment. Its books are private memory: nobody else looks.
// Best fit with coalescing, so that a long run does not fragment; O(log n). It grows and shrinks at
// its end, as its owner says.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

class local_heap {
 public:
  static constexpr std::size_t unit = 32;  ///< smallest block, and least alignment

  local_heap() = default;
  local_heap(std::size_t begin, std::size_t end) : begin_(begin), end_(begin) {
    extend(end - begin);
  }

  /// Offset of a block of `bytes`, aligned to `alignment` (a power of two); nothing if there is no
  /// room.
  std::optional<std::size_t> allocate(std::size_t bytes, std::size_t alignment) {
    bytes = round_up(bytes == 0 ? 1 : bytes, unit);
    if (alignment < unit) alignment = unit;
    for (auto it = by_size_.lower_bound({bytes, 0}); it != by_size_.end(); ++it) {
      auto [size, begin] = *it;
      std::size_t at = round_up(begin, alignment);
      if (at + bytes > begin + size) continue;  // alignment ate too much of this one
      remove_free(begin, size);
      if (at > begin) add_free(begin, at - begin);
      if (at + bytes < begin + size) add_free(at + bytes, begin + size - at - bytes);
      used_.emplace(at, bytes);
      in_use_ += bytes;
      return at;
    }
    return std::nullopt;
  }

  /// False if no block begins there: it was never allocated, or freed already.
  bool deallocate(std::size_t offset) {
    auto found = used_.find(offset);
    if (found == used_.end()) return false;
    std::size_t size = found->second;
    in_use_ -= size;
    used_.erase(found);
    join_free(offset, size);
    return true;
  }

  /// Frees the end of a block, all but its first `bytes`. False if no block begins there.
  bool trim(std::size_t offset, std::size_t bytes) {
    auto found = used_.find(offset);
    if (found == used_.end()) return false;
    bytes = round_up(bytes == 0 ? 1 : bytes, unit);
    const std::size_t before = found->second;
    if (bytes >= before) return true;
    found->second = bytes;
    in_use_ -= before - bytes;
    join_free(offset + bytes, before - bytes);
    return true;
  }

  /// By how many bytes the heap must grow for such a block, if it does not fit now.
  std::size_t shortage(std::size_t bytes, std::size_t alignment) const {
    std::size_t begin = round_up(end_ - free_at_end(), std::max(alignment, unit));
    return begin + round_up(bytes == 0 ? 1 : bytes, unit) - end_;
  }
  void extend(std::size_t bytes) {
    if (bytes != 0) join_free(end_, bytes);
    end_ += bytes;
  }

  /// What could be cut off the end.
  std::size_t free_at_end() const {
    if (by_offset_.empty()) return 0;
    auto [offset, size] = *by_offset_.rbegin();
    return offset + size == end_ ? size : 0;
  }
  /// At most free_at_end().
  void shrink(std::size_t bytes) {
    if (bytes == 0) return;
    auto [offset, size] = *by_offset_.rbegin();
    remove_free(offset, size);
    if (size > bytes) add_free(offset, size - bytes);
    end_ -= bytes;
  }

  std::size_t size() const { return end_ - begin_; }
  std::size_t in_use() const { return in_use_; }
  std::size_t largest_free() const { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }
  std::size_t total_free() const {
    std::size_t sum = 0;
    for (auto [offset, size] : by_offset_) sum += size;
    return sum;
  }

 private:
  static std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) & ~(to - 1); }
  void add_free(std::size_t offset, std::size_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove_free(std::size_t offset, std::size_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }
  /// Adds it, one with its free neighbours.
  void join_free(std::size_t offset, std::size_t size) {
    auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.end() && offset + size == next->first) {
      size += next->second;
      remove_free(next->first, next->second);
    }
    next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        remove_free(before->first, before->second);
      }
    }
    add_free(offset, size);
  }

  std::map<std::size_t, std::size_t> by_offset_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
  std::unordered_map<std::size_t, std::size_t> used_;
  std::size_t in_use_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
