// Which table each member of a hash map has, as one rank knows it, and how tables come and go.
//
//   control block of a member, in its segment:   | current | notices | size |
//
// `current` is where the member's table lies; a table that moves names its next one. `current` goes
// on to the next when all of a table has been moved; whoever does that tells every member (notices)
// and retires the old table, which is freed when nobody can be using it any more
// (containers/detail/retirement.hpp): each rank looks at its notices at the end of a barrier, and forgets what
// it knew.
//
// A table begins to move only when it is settled: all of the one before it has been moved into it.
// `current` is always settled, and so is every table that of() returns.
//
// `size` is how many entries its owner has added, less those it has erased, published at barriers.
#pragma once

#include <farside/containers/detail/map/table.hpp>
#include <farside/containers/detail/retirement.hpp>
#include <farside/core/collectives.hpp>
#include <farside/core/detail/container.hpp>

#include <deque>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

struct control {
  word current = 0, notices = 0, size = 0, spare = 0;
};

/// A far pointer in two parts: the rank need not wait for the offset, nor be taken out again.
struct far_place {
  rank_t rank;
  std::size_t offset;
  FARSIDE_HOT ptr<word> pointer() const { return {rank, offset}; }
};

/// What the shortest ways look at, and nothing else: all tables, of one size, all reached by loads
/// and stores, or all by gets, while nobody counts, no operation has to be sent, and one thread is
/// there alone. These conditions are looked at when one of them changes, not at each operation.
class quick_tables {
 public:
  struct part {
    union {
      word* buckets = nullptr;  ///< of a member's table
      word far_buckets;         ///< the same as a far pointer, where they come by gets
    };
    word left = 0;   ///< how many more of them this rank takes before it tells the table
    word until = 0;  ///< how many it will have taken then
    word told = 0;   ///< of how many it has told

    word taken() const { return until - left; }  ///< by any way
    void tell_again_at(word later) {
      left = later - taken();
      until = later;
    }
  };
  struct deleter {
    void operator()(quick_tables* q) const { ::operator delete(q); }
  };
  using owner = std::unique_ptr<quick_tables, deleter>;

  constexpr quick_tables() = default;
  /// With the parts behind it: where a part is depends on this address and the member alone.
  static owner make(rank_t members) {
    void* room = ::operator new(sizeof(quick_tables) + members * sizeof(part));
    auto* made = new (room) quick_tables();
    made->members = members;
    for (rank_t m = 0; m < members; ++m) new (&(*made)[m]) part();
    return owner(made);
  }

  FARSIDE_HOT part& operator[](word member) const {
    auto* from = reinterpret_cast<std::byte*>(const_cast<quick_tables*>(this));
    from += member * sizeof(part);
    asm("" : "+r"(from));  // the rest of the way is part of the instruction that loads
    return *reinterpret_cast<part*>(from + sizeof(quick_tables));
  }

  /// `bytes` behind the beginning of a member's table. Where all of them are at the same place of
  /// the segments of all ranks nothing has to be loaded, and waited for.
  FARSIDE_HOT far_place far_bucket(word member, word bytes) const {
    if (everywhere_at != 0) [[likely]]
      return {static_cast<rank_t>(member), everywhere_at + bytes};
    const auto at = ptr<word>::from_raw((*this)[member].far_buckets + bytes);
    return {at.rank(), at.offset()};
  }

  word capacity = 0;    ///< of each, less than place::narrow; 0: take another way
  word changeable = 0;  ///< the same for changes
  word by_gets = 0;     ///< the same for both where buckets come by gets
  word members = 0;
  word everywhere_at = 0;  ///< of by_gets: directory::common_offset()

  void close() { capacity = changeable = by_gets = 0; }
};

/// How a map names its own. Who has none any more has none that could be used: the way that is
/// taken then says why.
class quick_handle {
 public:
  quick_handle() = default;
  explicit quick_handle(const quick_tables& to) : to_(&to) {}
  quick_handle(quick_handle&& from) noexcept : to_(std::exchange(from.to_, &none)) {}
  quick_handle& operator=(quick_handle&& from) noexcept {
    to_ = std::exchange(from.to_, &none);
    return *this;
  }
  FARSIDE_HOT const quick_tables& operator*() const { return *to_; }

 private:
  static constexpr quick_tables none{};
  const quick_tables* to_ = &none;
};

class directory {
 public:
  /// Collective: each member makes a table of `capacity` buckets.
  directory(shared_state& of, std::size_t bucket_words, word capacity)
      : of_(of), c_(*of.where), bucket_words_(bucket_words) {
    rank_t me = of.members.world_rank(of.members.rank());
    controls_.resize(of.members.size());
    now_ = std::make_unique<std::atomic<table*>[]>(of.members.size());
    by_offset_.resize(of.members.size());
    quick_ = quick_tables::make(of.members.size());
    ptr<word> made;
    do_together(
        of.members, of.full_name(),
        [&] {
          mine_ = alloc<control>();
          try {
            made = make_table(me, capacity);
          } catch (const allocation_error&) {
            dealloc(std::exchange(mine_, nullptr));
            throw;
          }
        },
        [&] {
          free_table(me, made.offset());
          dealloc(std::exchange(mine_, nullptr));
        });
    put(mine_, control{made.offset(), 0, 0, 0});
    flush(me);
    struct both {
      ptr<control> where;
      word table;
    };
    auto all = all_gather(both{mine_, made.offset()}, of.members);
    barrier(of.members.members());  // tables are there before anybody looks at them
    for (rank_t m = 0; m < all.size(); ++m) {
      controls_[m] = all[m].where;
      now_[m].store(settled(m, all[m].table), std::memory_order_release);
    }
    look_for_quick_ways();
  }

  ~directory() {
    if (!of_.constructed && mine_) release();
  }

  /// Between two synchronisations: each member frees its own.
  void release() {
    quick_->close();
    retired_.end([](ptr<word> block) { dealloc(block); });
    word at = atomic_load(field(of_.members.rank(), 0));
    while (at != 0) {
      word next = read_header(mine_.rank(), at).next;
      free_table(mine_.rank(), at);
      at = next;
    }
    dealloc(std::exchange(mine_, nullptr));
  }

  /// The table of a member, from which a key's is reached.
  FARSIDE_HOT table& of(rank_t member) {
    table* t = now(member);
    if (t == nullptr) [[unlikely]]
      t = refresh(member);
    return *t;
  }

  /// A table for loads and stores: no buckets (null) if this rank must ask for it, or cannot reach
  /// it that way.
  struct view {
    word* buckets;
    word capacity;
  };
  FARSIDE_HOT view direct(rank_t member) const { return views()[member]; }

  /// The same for a loop. Most often all tables are of one size: then where a key's bucket is
  /// depends on its hash and on one load, which begins at once.
  struct several {
    FARSIDE_HOT view operator[](rank_t member) const {
      if (common_capacity != 0) [[likely]]
        return quickly(member);
      const table* t = from.now(member);
      return t != nullptr ? view{t->quick, t->capacity} : view{nullptr, 0};
    }
    /// If there is a common capacity.
    FARSIDE_HOT view quickly(rank_t member) const {
      word* first = (*quick)[member].buckets;
      if (first == nullptr || common_capacity >= place::narrow) __builtin_unreachable();
      return {first, common_capacity};
    }
    const directory& from;
    quick_tables* quick;
    word common_capacity;
  };
  FARSIDE_HOT several views() const { return {*this, quick_.get(), quick_->capacity}; }

  quick_tables& quick() const { return *quick_; }

  /// Whether direct() has buckets for every member.
  bool all_direct() const {
    if (quick_->capacity != 0) return true;
    for (rank_t m = 0; m < controls_.size(); ++m)
      if (direct(m).buckets == nullptr) return false;
    return true;
  }

  /// The table that `t` moves to. It has one: some bucket of it said so, or growth has begun.
  table& next_of(rank_t member, table& t) {
    header h = read_header(t.rank(), t.at.offset());
    if (t.next.load(std::memory_order_acquire) == nullptr)
      t.next.store(known(member, h.next), std::memory_order_release);
    table* next = t.next.load(std::memory_order_acquire);
    // All of it has moved: from now on this rank goes there at once.
    if (h.done >= t.chunks()) {
      next->settled.store(true, std::memory_order_relaxed);
      table* expected = &t;
      now_[member].compare_exchange_strong(expected, next);
      look_for_quick_ways();
    }
    return *next;
  }

  /// Makes sure that `t`, which is settled, has a next table, of `capacity` buckets: no fewer than
  /// `t` has, so that all of `t` fits in. Throws far::allocation_error if the owner's segment has
  /// no room for one, and nothing has changed then.
  void begin_move(table& t, word capacity) {
    if (atomic_load(t.field(header::at_next)) != 0) return;
    ptr<word> made = make_table(t.rank(), capacity);
    if (compare_swap(t.field(header::at_next), 0, made.offset()) != 0)
      free_table(t.rank(), made.offset());  // nobody else has seen it
  }

  /// All chunks of `t` have been moved: `current` goes on, and what it leaves is retired.
  void finish_move(rank_t member) {
    while (true) {
      word at = atomic_load(field(member, 0));
      header h = read_header(controls_[member].rank(), at);
      word chunks = (h.capacity + chunk - 1) / chunk;
      if (h.next == 0 || h.done < chunks) return;
      if (compare_swap(field(member, 0), at, h.next) != at) continue;
      for (rank_t m = 0; m < controls_.size(); ++m) fetch_add(field(m, 1), 1);
      ptr<word> block(controls_[member].rank(), h.block);
      if (FARSIDE_MUTANT(map_old_table_freed_early)) {
        dealloc(block);
      } else {
        std::lock_guard lock(c_.mutex);
        retired_.add(block);
      }
    }
  }

  void before_barrier() {
    // Of this rank alone, and nobody's to write: not worth counting.
    c_.link.put(mine_.rank(), mine_.offset() + offsetof(control, size), &size, sizeof size);
    std::lock_guard lock(c_.mutex);
    retired_.before_barrier();
  }

  void after_barrier() {
    word now = c_.link.template atomic_load<word>(mine_.rank(),
                                                  mine_.offset() + offsetof(control, notices));
    // Other threads of this rank may be in the middle of something: then old tables stay to the
    // end.
    if (c_.threads != thread_level::single) return;
    if (now != seen_notices_) {
      seen_notices_ = now;
      forget();
      ++epoch;
    }
    retired_.after_barrier([](ptr<word> block) { dealloc(block); });
  }

  /// From now on direct() has no buckets: operations are looked at before they begin.
  void without_short_ways() {
    short_ways_ = false;
    for (auto& t : storage_) t->quick = nullptr;
    look_for_quick_ways();
  }

  /// Sees whether quick() can be used. Of one thread alone: two words cannot be read as one.
  void look_for_quick_ways() {
    if (c_.threads != thread_level::single) return;
    quick_->close();
    if (c_.ended) return;
    if (c_.counts.operator->() != nullptr && !FARSIDE_MUTANT(map_counted_quickly))
      return;  // also while counting pauses
    for (rank_t m = 0; m < controls_.size(); ++m) {
      const table* t = now(m);
      if (t == nullptr || !short_ways_) return;
      if (t->capacity != now(0)->capacity && !FARSIDE_MUTANT(map_sizes_not_compared)) return;
      if (c_.link.coherent())
        (*quick_)[m].buckets = t->direct;
      else
        (*quick_)[m].far_buckets = t->bucket_at(0, bucket_words_).raw();
    }
    if (now(0)->capacity >= place::narrow) return;
    if (!c_.link.coherent()) {
      quick_->everywhere_at = common_offset();
      quick_->by_gets = now(0)->capacity;
      return;
    }
    quick_->capacity = now(0)->capacity;
    if (claims_inline()) quick_->changeable = quick_->capacity;
  }

  /// Where all far tables of quick() begin, if member m is rank m and it is the same place in all
  /// segments; else 0.
  word common_offset() const {
    const word at = ptr<word>::from_raw((*quick_)[0].far_buckets).offset();
    for (rank_t m = 0; m < controls_.size(); ++m)
      if ((*quick_)[m].far_buckets != ptr<word>(m, at).raw() &&
          !FARSIDE_MUTANT(map_places_not_compared))
        return 0;
    return at;
  }

  /// What it knew of tables; it will ask again.
  void forget() {
    for (rank_t m = 0; m < by_offset_.size(); ++m) {
      now_[m].store(nullptr, std::memory_order_relaxed);
      by_offset_[m].clear();
    }
    storage_.clear();
    quick_->close();
  }

  /// How many entries all members had added and not erased when they last came to a barrier; this
  /// rank's own count is the present one. n gets in flight together.
  word total_size() {
    std::vector<word> sizes(controls_.size());
    std::vector<future<void>> parts;
    parts.reserve(sizes.size());
    for (rank_t m = 0; m < controls_.size(); ++m)
      parts.push_back(async_get(field(m, 2), &sizes[m], 1));
    for (auto& part : parts) part.get();
    sizes[of_.members.rank()] = size;
    word sum = 0;
    for (word s : sizes) sum += s;
    return sum;
  }

  /// Whether a member's table at an offset may still be read.
  bool in_use(rank_t member, word offset) {
    word at = atomic_load(field(member, 0));
    while (at != 0 && at != offset) at = read_header(controls_[member].rank(), at).next;
    return at != 0;
  }

  header read_header(rank_t rank, word offset) const { return get(ptr<header>(rank, offset)); }

  word size = 0;   ///< what this rank has added, less what it has erased
  word epoch = 0;  ///< counts how often it forgot: positions from before mean nothing

 private:
  ptr<word> field(rank_t member, std::ptrdiff_t index) const {
    return pointer_cast<word>(controls_[member]) + index;
  }

  [[gnu::noinline]] table* refresh(rank_t member) {
    table* t = settled(member, atomic_load(field(member, 0)));
    now_[member].store(t, std::memory_order_release);
    look_for_quick_ways();
    return t;
  }

  table* now(rank_t member) const {
    // Relaxed: what is read of it goes through the pointer, which orders it on every CPU there is,
    // and other threads of this rank have published it by a release.
    return now_[member].load(std::memory_order_relaxed);
  }

  /// The same of one that was found to be current.
  table* settled(rank_t member, word offset) {
    table* t = known(member, offset);
    t->settled.store(true, std::memory_order_relaxed);
    return t;
  }

  /// This rank's description of the table of a member at an offset.
  table* known(rank_t member, word offset) {
    std::lock_guard lock(c_.mutex);
    table*& t = by_offset_[member][offset];
    if (t != nullptr) return t;
    rank_t rank = controls_[member].rank();
    storage_.push_back(std::make_unique<table>());
    t = storage_.back().get();
    t->at = ptr<word>(rank, offset);
    t->capacity = read_header(rank, offset).capacity;
    word* first = t->at.local();
    if (first != nullptr) first += header::words;
    if (c_.link.coherent()) t->direct = first;
    if (short_ways_) t->quick = t->direct;
    if (rank == c_.link.rank()) t->own = first;
    return t;
  }

  void free_table(rank_t rank, word offset) {
    dealloc(ptr<word>(rank, read_header(rank, offset).block));
  }

  /// An empty table on `rank`, complete.
  ptr<word> make_table(rank_t rank, word capacity) {
    std::size_t end = header::words + capacity * bucket_words_,
                words = end + (FARSIDE_MUTANT(map_one_sentinel) ? 1 : sentinels) * bucket_words_;
    ptr<word> block = alloc_on<word>(rank, words + 8);  // aligned to 16; a bucket shall not be cut
    ptr<word> at(rank, (block.offset() + 63) & ~std::size_t{63});
    std::vector<word> zeros(std::min<std::size_t>(words, 1 << 15));
    for (std::size_t done = 0; done < words; done += zeros.size())
      put(at + static_cast<std::ptrdiff_t>(done), zeros.data(),
          std::min(zeros.size(), words - done));
    flush(rank);  // before the header: two puts to one place have no order
    header h;
    h.capacity = capacity;
    h.block = block.offset();
    put(pointer_cast<header>(at), h);
    for (; end < words && !FARSIDE_MUTANT(map_without_sentinel); end += bucket_words_)
      put(at + static_cast<std::ptrdiff_t>(end), sentinel);
    flush(rank);
    return at;
  }

  shared_state& of_;
  context& c_;
  std::size_t bucket_words_;
  ptr<control> mine_;
  std::vector<ptr<control>> controls_;
  std::unique_ptr<std::atomic<table*>[]> now_;     ///< of each member
  std::vector<std::map<word, table*>> by_offset_;  ///< of each member
  std::vector<std::unique_ptr<table>> storage_;
  retirement<ptr<word>> retired_;
  quick_tables::owner quick_;
  word seen_notices_ = 0;
  bool short_ways_ = true;
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map
