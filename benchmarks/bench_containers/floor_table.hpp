// The floor of the hash map: what a careful programmer writes for one process. Linear probing, two
// thirds full, buckets as large as ours, the same hash.
#pragma once

#include <farside/containers/hash_map.hpp>
#include <farside/farside.hpp>

#include <atomic>
#include <cstring>
#include <utility>

namespace far::bench {

using word = std::uint64_t;

/// A table in memory that it is given.
class floor_table {
 public:
  struct bucket {
    word used, spare, value, key;
  };
  static constexpr std::size_t bytes_for(std::size_t entries) {
    return (entries + entries / 2 + 65) * sizeof(bucket);
  }

  floor_table(void* memory, std::size_t entries)
      : capacity_(entries + entries / 2 + 64), buckets_(static_cast<bucket*>(memory)) {}

  void clear() { std::memset(static_cast<void*>(buckets_), 0, capacity_ * sizeof(bucket)); }

  // These are part of the loop they are called in, as the map's ways are.
  [[gnu::always_inline]] bool insert(word key, word value) {
    bucket& b = at(key);
    if (b.used) return false;
    b = {1, 0, value, key};
    return true;
  }
  [[gnu::always_inline]] void assign(word key, word value) { at(key) = {1, 0, value, key}; }
  [[gnu::always_inline]] const word* find(word key) const {
    const bucket& b = at(key);
    return b.used ? &b.value : nullptr;
  }
  [[gnu::always_inline]] void add(word key, word value) {
    bucket& b = at(key);
    if (!b.used) b = {1, 0, 0, key};
    b.value += value;
  }

 private:
  [[gnu::always_inline]] bucket& at(word key) const {
    bucket *b = buckets_ + reduce_hash(hash<word>()(key) << 20, capacity_),
           *end = buckets_ + capacity_;
    // The first step without a branch that nobody can predict; a bucket more than needed is there.
    b += (b->key != key) & (b->used != 0);
    asm("" : "+r"(b));
    while (b->key != key || !b->used) {
      if (!b->used) {
        if (b != end) break;
        b = buckets_ - 1;
      }
      ++b;
    }
    return *b;
  }

  std::size_t capacity_;
  bucket* buckets_;
};

/// A floor table of this rank alone, in its segment.
class own_table : public floor_table {
 public:
  explicit own_table(std::size_t entries)
      : own_table(alloc<word>(bytes_for(entries) / sizeof(word)), entries) {}
  own_table(own_table&&) = delete;
  ~own_table() { dealloc(memory_); }

 private:
  own_table(ptr<word> memory, std::size_t entries)
      : floor_table(memory.local(), entries), memory_(memory) {
    clear();
  }
  ptr<word> memory_;
};

/// What sharing costs on this machine: the same buckets in one table of all ranks, where they share
/// memory, and the least that lets them insert at once: a bucket that is seen to be empty is
/// claimed by one compare-and-swap, then written, then shown. It neither grows nor erases, nor
/// knows how many entries it has. Lines that another core has written have to come from there,
/// which is no matter of whose library it is.
class shared_table {
 public:
  explicit shared_table(std::size_t entries)
      : capacity_(entries + entries / 2 + 64), memory_(nullptr) {
    if (rank() == 0) memory_ = alloc<word>(capacity_ * sizeof(bucket) / sizeof(word));
    memory_ = broadcast(memory_, 0);
    buckets_ = reinterpret_cast<bucket*>(memory_.local());
    clear();
  }
  shared_table(shared_table&&) = delete;
  ~shared_table() {
    barrier();
    if (rank() == 0) dealloc(memory_);
  }

  /// Collective: each rank its share, as those of a map do.
  void clear() {
    std::size_t from = capacity_ * rank() / nprocs(), to = capacity_ * (rank() + 1) / nprocs();
    std::memset(static_cast<void*>(buckets_ + from), 0, (to - from) * sizeof(bucket));
    barrier();
  }
  bool insert(word key, word value) {
    bucket* b = buckets_ + reduce_hash(hash<word>()(key) << 20, capacity_);
    for (;; b = b + 1 == buckets_ + capacity_ ? buckets_ : b + 1) {
      std::atomic_ref<word> used(b->used);
      word seen = used.load(std::memory_order_relaxed);
      if (seen == 0 && used.compare_exchange_strong(seen, claimed, std::memory_order_relaxed)) {
        b->value = value;
        b->key = key;
        used.store(shown, std::memory_order_release);
        return true;
      }
      while (used.load(std::memory_order_acquire) == claimed) {
      }
      if (b->key == key) return false;
    }
  }

 private:
  using bucket = floor_table::bucket;
  enum : word { claimed = 1, shown = 2 };

  std::size_t capacity_;
  ptr<word> memory_;
  bucket* buckets_;
};

}  // namespace far::bench
