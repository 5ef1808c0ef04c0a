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

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::map {

struct control {
  word current = 0, notices = 0, size = 0, spare = 0;
};

/// What a rank counts of a member's table. Several of its threads may share it.
struct table_counts {
  word taken = 0;          ///< how many buckets this rank has taken
  word tell_at = 0;        ///< when it tells the table again
  word told = 0;           ///< of how many it has told the table
  word dead = 0;           ///< erased, less revived, since it was told
  word no_room_until = 0;  ///< growth was in vain: not before so many are used
};

/// What a map knows of a member's table.
struct member_facts {
  /// What the fast path looks at, and nothing else. It may not be taken while somebody counts
  /// operations, they are sent to owners, the runtime has ended or the table is not known. That is
  /// settled when one of these changes, not at each operation.
  struct found {
    word* buckets = nullptr;  ///< null: not on the fast path
    word capacity = 0;
  };
  /// Another thread may change this meanwhile. It marks `current_` first, so one that is the address
  /// before and after belongs to what was read between: where ranks have threads no table is freed,
  /// and no address comes again, before the end.
  FARSIDE_HOT found direct() const {
    word* const at = buckets_.load(std::memory_order_acquire);
    if (at == nullptr) __builtin_unreachable();
    const word capacity = capacity_.load(std::memory_order_acquire);
    return {current_.load(std::memory_order_relaxed) == at ? at : nullptr, capacity};
  }

  /// One thread at a time.
  void go_to(table* t, bool may_be_fast) {
    now.store(t, std::memory_order_release);
    word* const buckets = may_be_fast && t != nullptr ? t->direct : nullptr;
    if (buckets != nullptr && current_.load(std::memory_order_relaxed) == buckets) return;
    current_.store(nullptr, std::memory_order_relaxed);
    if (buckets == nullptr) return;
    capacity_.store(t->capacity, std::memory_order_release);
    buckets_.store(buckets, std::memory_order_release);
    current_.store(buckets, std::memory_order_release);
  }

 private:
  static inline word nowhere = 0;  ///< what `buckets_` is where there has been no table
  std::atomic<word*> buckets_{&nowhere}, current_{nullptr};
  std::atomic<word> capacity_{0};

 public:
  /// The settled table that this rank goes to. Null: not known.
  std::atomic<table*> now{nullptr};
};

/// How the fast path of one map finds its tables. A map that was moved from has none: the full path
/// then says why.
struct fast_handle {
  fast_handle() = default;
  fast_handle(member_facts* of, rank_t members, rank_t me)
      : facts_(of), members_(members), me_(me) {}
  fast_handle(fast_handle&& from) noexcept { *this = std::move(from); }
  fast_handle& operator=(fast_handle&& from) noexcept {
    facts_ = std::exchange(from.facts_, &none);
    members_ = std::exchange(from.members_, 1);
    me_ = from.me_;
    return *this;
  }
  FARSIDE_HOT member_facts& operator[](std::size_t member) const { return facts_[member]; }
  FARSIDE_HOT std::uint32_t members() const { return members_; }
  FARSIDE_HOT std::uint32_t me() const { return me_; }

 private:
  static inline member_facts none{};
  member_facts* facts_ = &none;
  std::uint32_t members_ = 1, me_ = 0;
};

class directory {
 public:
  /// Collective: each member makes a table of `capacity` buckets.
  directory(shared_state& of, std::size_t bucket_words, word capacity)
      : of_(of), c_(*of.where), bucket_words_(bucket_words) {
    rank_t me = of.members.world_rank(of.members.rank());
    controls_.resize(of.members.size());
    facts_ = std::make_unique<member_facts[]>(of.members.size());
    counts_.resize(of.members.size());
    by_offset_.resize(of.members.size());
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
        [&, this] {
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
      go_to(m, known(m, all[m].table));
    }
    look_at_fast_path();
  }

  ~directory() {
    if (!of_.constructed && mine_) release();
  }

  /// Between two synchronisations: each member frees its own.
  void release() {
    without_fast_path();
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

  FARSIDE_HOT table_counts& counts(rank_t member) { return counts_[member]; }
  std::uint32_t members() const { return static_cast<std::uint32_t>(controls_.size()); }
  fast_handle fast() const { return {facts_.get(), members(), of_.members.rank()}; }

  /// The table that `t` moves to. It has one: some bucket of it said so, or growth has begun.
  table& next_of(rank_t member, table& t) {
    // Heads are loaded in no order. What said that a bucket has moved was stored when the copy of it
    // was complete, and the fence that this get ends with comes before all that looks at the copy.
    header h = read_header(t.rank(), t.at.offset());
    table* next = known(member, h.next);
    // All of it has moved: from now on this rank goes there at once.
    if (h.done >= t.chunks()) {
      std::lock_guard lock(c_.mutex);
      if (now(member) == &t) go_to(member, next);
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
      tell_all();
      ptr<word> block(controls_[member].rank(), h.block);
      if (FARSIDE_MUTANT(map_old_table_freed_early)) {
        dealloc(block);
      } else {
        std::lock_guard lock(c_.mutex);
        retired_.add(block);
      }
    }
  }

  /// Tells every member that something has been replaced: it forgets what it knew when it leaves its
  /// next barrier.
  void tell_all() {
    for (rank_t m = 0; m < controls_.size(); ++m) fetch_add(field(m, 1), 1);
  }

  /// `size`: what this rank has added, less what it has erased.
  void before_barrier(word size) {
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

  /// From now on all operations take the full path, such as where they may have to be sent.
  void without_fast_path() {
    full_path_ = true;
    look_at_fast_path();
  }

  /// Sees whether the fast path may be taken. Called when an answer to that may have changed.
  void look_at_fast_path() {
    std::lock_guard lock(c_.mutex);
    // Also while counting pauses.
    const bool counted =
        c_.counts.operator->() != nullptr && !FARSIDE_MUTANT(map_fast_while_counted);
    open_ = !full_path_ && !counted && !c_.ended;
    for (rank_t m = 0; m < controls_.size(); ++m) go_to(m, now(m));
  }

  /// What it knew of tables; it will ask again.
  void forget() {
    for (rank_t m = 0; m < by_offset_.size(); ++m) {
      go_to(m, nullptr);
      by_offset_[m].clear();
    }
  }

  /// How many entries all members had added and not erased when they last came to a barrier; this
  /// rank's own count is the present one. n gets in flight together.
  word total_size(word own) {
    std::vector<word> sizes(controls_.size());
    std::vector<future<void>> parts;
    parts.reserve(sizes.size());
    for (rank_t m = 0; m < controls_.size(); ++m)
      parts.push_back(async_get(field(m, 2), &sizes[m], 1));
    for (auto& part : parts) part.get();
    sizes[of_.members.rank()] = own;
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

  /// Whether a table moves, or has moved, to another.
  bool has_next(const table& t) const { return read_header(t.rank(), t.at.offset()).next != 0; }

  header read_header(rank_t rank, word offset) const { return get(ptr<header>(rank, offset)); }

  static void put_zeros(ptr<word> at, std::size_t words) {
    const std::vector<word> zeros(std::min<std::size_t>(words, 1 << 15));
    for (std::size_t done = 0; done < words; done += zeros.size())
      put(at + static_cast<std::ptrdiff_t>(done), zeros.data(),
          std::min(zeros.size(), words - done));
  }

  word epoch = 0;  ///< counts how often it forgot: positions from before mean nothing

 private:
  ptr<word> field(rank_t member, std::ptrdiff_t index) const {
    return pointer_cast<word>(controls_[member]) + index;
  }

  [[gnu::noinline]] table* refresh(rank_t member) {
    table* t = known(member, atomic_load(field(member, 0)));
    std::lock_guard lock(c_.mutex);
    go_to(member, t);
    return t;
  }

  table* now(rank_t member) const {
    // Relaxed: what is read of it goes through the pointer, which orders it on every CPU there is,
    // and other threads of this rank have published it by a release.
    return facts_[member].now.load(std::memory_order_relaxed);
  }
  void go_to(rank_t member, table* t) { facts_[member].go_to(t, open_); }

  /// This rank's description of the table of a member at an offset.
  table* known(rank_t member, word offset) {
    std::lock_guard lock(c_.mutex);
    auto [place, fresh] = by_offset_[member].try_emplace(offset);
    table& t = place->second;
    if (!fresh) return &t;
    rank_t rank = controls_[member].rank();
    t.at = ptr<word>(rank, offset);
    t.capacity = read_header(rank, offset).capacity;
    word* first = t.at.local();
    if (first != nullptr) first += header::words;
    if (c_.link.coherent()) t.direct = first;
    if (rank == c_.link.rank()) t.own = first;
    return &t;
  }

  void free_table(rank_t rank, word offset) {
    dealloc(ptr<word>(rank, read_header(rank, offset).block));
  }

  /// An empty table on `rank`, complete.
  ptr<word> make_table(rank_t rank, word capacity) {
    const std::size_t words = header::words + capacity * bucket_words_;
    ptr<word> block = alloc_on<word>(rank, words + 8);  // aligned to 16; a bucket shall not be cut
    ptr<word> at(rank, (block.offset() + 63) & ~std::size_t{63});
    put_zeros(at, words);
    flush(rank);  // before the header: two puts to one place have no order
    header h;
    h.capacity = capacity;
    h.block = block.offset();
    put(pointer_cast<header>(at), h);
    flush(rank);
    return at;
  }

  shared_state& of_;
  context& c_;
  std::size_t bucket_words_;
  ptr<control> mine_;
  std::vector<ptr<control>> controls_;
  std::unique_ptr<member_facts[]> facts_;         ///< of each member
  std::vector<table_counts> counts_;              ///< likewise
  std::vector<std::map<word, table>> by_offset_;  ///< of each member, by where they lie
  retirement<ptr<word>> retired_;
  word seen_notices_ = 0;
  bool full_path_ = false;  ///< for good
  bool open_ = false;       ///< the fast path may be taken
};

}  // namespace far::inline FARSIDE_BACKEND::detail::map
