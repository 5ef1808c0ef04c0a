// The floor of the hash map: what a careful programmer writes for one process. Linear probing, two
// thirds full, buckets as large as ours, the same hash.
#pragma once

#include <farside/containers/hash_map.hpp>
#include <farside/farside.hpp>

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
  bool insert(word key, word value) {
    bucket& b = at(key);
    if (b.used) return false;
    b = {1, 0, value, key};
    return true;
  }
  void assign(word key, word value) { at(key) = {1, 0, value, key}; }
  const word* find(word key) const {
    const bucket& b = at(key);
    return b.used ? &b.value : nullptr;
  }
  void add(word key, word value) {
    bucket& b = at(key);
    if (!b.used) b = {1, 0, 0, key};
    b.value += value;
  }

 private:
  bucket& at(word key) const {
    bucket *b = buckets_ + detail::reduce_hash(hash<word>()(key) << 20, capacity_),
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

}  // namespace far::bench
