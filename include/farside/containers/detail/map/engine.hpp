// The operations of a hash map on its tables. docs/protocols/hash_map.md has the states, the
// invariants and why it is right; the comments here say which step is which.
#pragma once

#include <farside/containers/detail/concurrency_check.hpp>
#include <farside/containers/detail/dispatch/choice.hpp>
#include <farside/containers/detail/map/directory.hpp>
#include <farside/containers/detail/map/known_cells.hpp>
#include <farside/containers/detail/map/probing.hpp>
#include <farside/containers/detail/map/stored.hpp>
#include <farside/containers/detail/map/updates.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/detail/crash_report.hpp>

#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

namespace detail::map {

template <class Engine>
struct prefetched;
template <class V>
struct answer;

/// What can be asked of the owner of a key (asking.hpp).
struct find_there {};
struct erase_there {};
struct insert_there {};
struct assign_there {};
template <class Op>
struct accumulate_there {
  Op op;
};
template <class F>
struct modify_there {
  F change;
};

/// What an operation has done to the counts of a table.
enum class counted { nothing, at_home, away, erased, revived };

template <class K, class V, class Hash, class Probing>
class engine : public shared_state {
 public:
  using answer_type = answer<V>;
  using key_store = stored<K>;
  using value_store = stored_value<V>;
  using entry = bucket<value_store::words, key_store::words>;
  static constexpr std::size_t bucket_words = sizeof(entry) / 8;
  static constexpr bool cells = countable<V>;
  static constexpr bool in_place = key_store::in_place && value_store::in_place;
  static constexpr bool may_be_coherent = !never_coherent<transport>;

  engine(const container_options& with, word capacity)
      : shared_state("hash_map", with),
        c(*where),
        tables(*this, bucket_words, std::max(capacity, least_capacity)),
        overlaps(*this),
        member_count_(members.size()),
        pending_(members.size()) {
    constexpr double keys = key_store::in_place ? 0 : 1, values = value_store::in_place ? 0 : 1;
    choice.open(*this, with,
                {{container_operation::find, {1 + keys + values, 0, 0}},
                 {container_operation::insert, {in_place ? 0 : 1 + keys, 1, 1}},
                 {container_operation::modify, {1 + keys + values, cells ? 0.0 : 1.0, 1}},
                 {container_operation::erase, {1 + keys, 0, 1}}});
    if (choice.any()) tables.without_short_ways();
  }

  void counting_changed() override { tables.look_for_quick_ways(); }
  void runtime_ended() override { tables.look_for_quick_ways(); }

  void before_end() override { choice.settle(c); }

  void before_barrier() override {
    tables.size = own_size();
    tables.before_barrier();
    if (c.threads == thread_level::single) retire_dropped();
  }
  void after_barrier() override {
    tables.after_barrier();
    overlaps.next_epoch();
    unreachable_.after_barrier(free_key);
  }
  void release() override {
    tables.forget();  // what others have retired they are about to free
    if constexpr (!in_place) release_bytes(tables.of(members.rank()));
    unreachable_.end(free_key);
    for (const dropped& key : dropped_) free_key(key);
    overlaps.release();
    tables.release();
  }

  static word hash_of(const K& key) {
    auto h = static_cast<word>(Hash()(key));
    return std::is_same_v<Hash, hash<K>> ? h : mix(h);  // ours is good in all bits already
  }
  place place_of(const K& key) const { return place(hash_of(key), member_count_); }

  /// How many entries this rank has added, less those it has erased.
  word own_size() const {
    word sum = 0;
    for (rank_t m = 0; m < member_count_; ++m) sum += tables.quick()[m].taken();
    return sum - erased_;
  }
  word total_size() {
    tables.size = own_size();
    return tables.total_size();
  }

  /// The table of a member for short ways: no buckets if this rank must ask for it, or cannot reach
  /// it by loads and stores, or if operations are counted.
  using view = directory::view;
  FARSIDE_HOT view quick(rank_t member) const {
    return !c.counts ? tables.direct(member) : view{nullptr, 0};
  }

  /// Whether an operation of this kind is to be sent to the member that holds its key.
  bool asks(container_operation kind, rank_t member, concurrency with) const {
    return choice.asks(kind) && member != members.rank() &&
           !includes(with, concurrency::owner_only);
  }

  /// The same for many, of which some may be this rank's own.
  bool asks_many(container_operation kind, concurrency with) const {
    return choice.asks(kind) && !includes(with, concurrency::owner_only);
  }

  /// asking.hpp.
  template <class What, class Item>
  answer_type serve(What& what, const Item& item, concurrency with);
  answer_type accept(rank_t member, reader& from);
  template <class Item, class What>
  writer question(const What& what, concurrency with, std::size_t count);
  std::optional<answer_type> answer_to(rank_t member, const std::vector<std::byte>& bytes);
  template <class What, class Item>
  std::optional<answer_type> ask(rank_t member, const What& what, const Item& item,
                                 concurrency with);
  template <class What, class Item, class Result, class Alone>
  auto ask_later(rank_t member, const What& what, const Item& item, concurrency with, Result result,
                 Alone alone);
  template <class What, class Item, class Take, class Alone>
  void ask_many(const What& what, std::span<const Item> items, concurrency with, Take take,
                Alone alone);

  /// Whether quick() has buckets for every member.
  bool reaches_all() const { return !c.counts && tables.all_direct(); }

  // --- finding ---------------------------------------------------------------------------------

  enum class found { mine, mine_moved, empty, gone, full };
  struct position {
    found what;
    word index = 0;
    word step = 0;
    head seen{};  ///< of an empty bucket: zero
  };

  /// The first bucket in the probe sequence that is the key's (then `out` is a copy of it) or
  /// empty. gone: an empty one that has been moved, so that the next table has the answer. full:
  /// all belong to other keys, for good; a next table may have the answer.
  template <bool Quiet = false, class Access>
  position probe(Access& in, const table& t, const place& p, const K& key, entry& out) const {
    word home = p.home(t.capacity);
    for (word step = 0; step < t.capacity + Probing::extra; ++step) {
      word i = Probing::at(home, step, t.capacity);
      head h = Quiet ? in.top_quiet(i) : in.top(i);
      while (true) {
        if (h.is_empty()) return {found::empty, i, step};
        if (FARSIDE_MUTANT(map_tombstone_reused) && h.what() == state::erased && !h.moved())
          return {found::empty, i, step, h};
        if (h.moved_empty()) return {found::gone, i, step};
        if (h.fingerprint() != p.fingerprint()) break;
        if constexpr (Quiet) {
          in.read_quiet(i, out);
        } else if (!in.read(i, h, out)) {
          h = out.top();
          continue;
        }
        auto same = FARSIDE_MUTANT(map_fingerprint_trusted) ? std::optional<bool>(true)
                                                            : key_store::equals(out.key(), key);
        if (!same) {  // the bytes of the key were freed meanwhile: its bucket has moved
          in.forget();
          h = in.top(i);
          wait_or_throw(c);
          continue;
        }
        if (!*same) break;
        return {h.moved() ? found::mine_moved : found::mine, i, step};
      }
    }
    return {found::full};
  }

  /// Of a full table, in which there is no empty bucket to say so: does it move?
  bool has_next(const table& t) const {
    return tables.read_header(t.rank(), t.at.offset()).next != 0;
  }

  /// The value of a bucket, none if it is erased. `again`: look once more, as its bytes were freed,
  /// or it is a cell on its way to the next table: what was added since it was frozen is in the
  /// word too.
  static std::optional<V> value_in(const entry& e, bool& again) {
    again = false;
    if (e.top().what() == state::erased) return std::nullopt;
    if constexpr (cells) {
      if (e.top().what() == state::cell) {
        again = e.value()[0] & cell::frozen;
        if (again || e.value()[0] & cell::absent) return std::nullopt;
        return cell::decode<V>(e.value()[0]);
      }
    }
    auto value = value_store::unpack(e.value());
    again = !value;
    return value;
  }

  template <bool Quiet, class Access>
  std::optional<V> find_with(Access in, table& first, const place& p, const K& key) {
    entry e;
    table* t = &first;
    while (true) {
      position at = probe<Quiet>(in, *t, p, key, e);
      if (at.what == found::empty || (at.what == found::full && !has_next(*t))) return std::nullopt;
      if (at.what == found::mine) {
        bool again;
        auto value = value_in(e, again);
        if (!again) return value;
        in.forget();
        wait_or_throw(c);
        continue;
      }
      t = &tables.next_of(p.member, *t);
      return find_with<Quiet>(Access(c, *t), *t, p, key);
    }
  }

  /// `Alone`: one-sided, whatever the engine.
  template <bool Alone = false, class Window = prefetched<engine>>
  FARSIDE_HOT std::optional<V> find(const K& key, place p, concurrency with,
                                    Window* have = nullptr) {
    if constexpr (may_be_coherent && in_place) {
      view t = quick(p.member);
      if (t.buckets != nullptr) [[likely]] {
        word raw[entry::value_words];
        glance seen = includes(concurrency::find | concurrency::owner_only, with)
                          ? find_at_once<true>(t, p, key, raw)
                          : find_at_once<false>(t, p, key, raw);
        if (seen == glance::absent) return std::nullopt;
        if constexpr (cells)
          if (seen == glance::in_cell) return std::optional<V>(cell::decode<V>(raw[0]));
        if (seen == glance::found) return value_store::unpack(raw);
        return find_slowly(key, with, have);
      }
    }
    if constexpr (!Alone)
      if (have == nullptr && choice.any()) [[unlikely]]
        return find_somehow(key, p, with);
    if constexpr (in_place) {
      if (have == nullptr && !includes(with, concurrency::owner_only))
        return find_by_get(key, p, with);
      if (have != nullptr && have->in->direct == nullptr)
        return find_in_window(*have, p, key, with);
    }
    return find_slowly(key, with, have);
  }

  /// By its owner, if that is to be asked.
  [[gnu::noinline, gnu::cold]] std::optional<V> find_somehow(handed<K> key, place p,
                                                             concurrency with) {
    if (asks(container_operation::find, p.member, with))
      if (auto found = ask(p.member, find_there{}, key, with)) return std::move(found->value);
    return find_alone(key, p, with);
  }

  template <class Window = prefetched<engine>>
  FARSIDE_HOT std::optional<V> find_alone(const K& key, place p, concurrency with,
                                          Window* have = nullptr) {
    return find<true>(key, p, with, have);
  }

  /// short_ways.hpp.
  std::optional<V> find_in_window(prefetched<engine>& seen, place p, handed<K> key,
                                  concurrency with);
  std::optional<V> find_by_get(handed<K> key, place p, concurrency with);
  struct quick_window;
  returned<V> find_by_one_get(const quick_tables& in, handed<K> key, concurrency with);
  returned<V> find_further(const quick_window& seen, handed<K> key, concurrency with);

  /// Takes the key apart once more, so that nothing but the key outlives the short way.
  template <class Window>
  [[gnu::noinline]] std::optional<V> find_slowly(handed<K> key, concurrency with, Window* have) {
    place p = place_of(key);
    table& t = have != nullptr ? *have->in : tables.of(p.member);
    return reach(t, with, [&](auto in) {
      if constexpr (in.is_far)
        if (have != nullptr) in.have(have->first, have->buckets.data(), have->count);
      if (!includes(concurrency::find | concurrency::owner_only, with))
        return find_with<false>(std::move(in), t, p, key);
      return find_with<true>(std::move(in), t, p, key);
    });
  }

  /// What an update has done.
  struct outcome {
    bool created = false;
    std::optional<V> old{};  ///< what was there, where the update asked for it

    /// Of an update that asks for it.
    FARSIDE_HOT static outcome of_old(std::optional<V> old) {
      return {!old.has_value(), std::move(old)};
    }
  };

  enum class glance { unclear, absent, in_cell, found };

  /// short_ways.hpp.
  template <bool ToChange>
  static glance look_in(const entry* buckets, word count, const ptr<word>& home,
                        std::uint32_t fingerprint, handed<K> key, bool quiet, word& index);
  template <class Slowly>
  static returned<V> find_in(const entry* buckets, word count, const ptr<word>& home,
                             std::uint32_t fingerprint, handed<K> key, const concurrency& with,
                             Slowly slowly);
  FARSIDE_HOT static ptr<word> bucket_after(ptr<word> home, word index) {
    return home + static_cast<std::ptrdiff_t>(index * bucket_words);
  }
  class trail;
  template <bool Quiet>
  static glance find_at_once(view t, place p, const K& key, word* raw);

  /// quick_ways.hpp.
  static constexpr bool is_plain = in_place && std::is_same_v<Probing, linear_probing>;
  static constexpr bool has_quick_ways = may_be_coherent && is_plain;
  static constexpr bool has_quick_gets = !always_coherent<transport> && is_plain;
  /// Inserts, most of which find their home empty, and additions have shorter ways still.
  template <class Update>
  static constexpr bool changes_by_one_get =
      has_quick_gets && cells && Update::changes && !adds<Update>;
  template <class Update>
  static constexpr bool creates_by_one_swap = has_quick_gets && !Update::changes;
  template <class Update>
  static constexpr bool adds_by_one_atomic = has_quick_gets && cells && adds<Update>;
  struct spot;
  template <bool Owned>
  static bool create_quickly(word* at, word wanted, handed<K> key, handed<V> value);
  template <bool Quiet>
  static std::optional<V> find_quickly(const quick_tables& in, handed<K> key, bool& clear);
  template <bool Owned, class Update, class Tell>
  static bool update_quickly(const quick_tables& in, const spot& where, handed<K> key,
                             const Update& with, outcome& done, Tell tell);

  /// The short way for many keys at once: those of `n` that can be found that way are, in any
  /// order, and `missed(i)` is called for the others. bulk.hpp.
  static constexpr bool finds_together =
      in_place && bucket_words <= 18 && std::is_same_v<Probing, linear_probing>;
  template <bool Quiet, class Missed>
  void find_together(const K* keys, std::size_t n, std::optional<V>* results, Missed missed) const;
  static constexpr std::size_t prefetched_together = 32;
  struct sought {
    FARSIDE_HOT void fetch(std::size_t i, word* home) {
      at[i] = home;
      __builtin_prefetch(home);
      __builtin_prefetch(home + bucket_words);
    }
    word* at[prefetched_together];
    word wanted[prefetched_together];  ///< see spot::wanted_of()
  };
  template <class ViewOf>
  void seek(const K* keys, std::size_t begin, std::size_t end, sought& where, ViewOf view_of) const;
  static constexpr bool mixes_words = [] {
    if constexpr (std::is_same_v<Hash, hash<K>> && requires { Hash::mixes_words; })
      return Hash::mixes_words;
    else
      return false;
  }();
  std::size_t seek_widely(const directory::several& views, const K* keys, std::size_t n,
                          sought& where) const;
  template <bool Quiet, class Missed>
  static void take_cells(const sought& where, const K* keys, std::size_t n,
                         std::optional<V>* results, Missed missed);
  template <bool Quiet, class Missed>
  static void take_bodies(sought& where, const K* keys, std::size_t n, std::optional<V>* results,
                          Missed missed);

  /// Calls `work` with the access that fits.
  template <class Work>
  FARSIDE_HOT auto reach(table& t, concurrency with, Work&& work) {
    if (includes(with, concurrency::owner_only) && t.own != nullptr)
      return work(local_access<entry>(c, t));
    if constexpr (may_be_coherent) {
      if (t.direct != nullptr) [[likely]]
        return work(direct_access<entry>(c, t));
    }
    return reach_far(t, work);
  }

  // --- changing --------------------------------------------------------------------------------

  /// asking.hpp.
  template <class Update>
  std::optional<outcome> ask_update(rank_t member, const K& key, const Update& with,
                                    concurrency promised);

  template <bool Alone = false, class Update, class Window = prefetched<engine>>
  FARSIDE_HOT outcome update(const K& key, place p, const Update& with, concurrency promised,
                             Window* have = nullptr) {
    if constexpr (may_be_coherent && in_place) {
      view t = quick(p.member);
      outcome done;
      if (t.buckets != nullptr && update_at_once(t, p, key, with, done)) [[likely]]
        return done;
    }
    if constexpr (!Alone)
      if (have == nullptr && choice.any()) [[unlikely]]
        return update_somehow<Update>(key, p, with, promised);
    return update_slowly<Update>(key, with, promised, have);
  }
  template <class Update>
  [[gnu::noinline, gnu::cold]] outcome update_somehow(handed<K> key, place p, handed<Update> with,
                                                      concurrency promised) {
    if (asks(kind_of<Update>, p.member, promised))
      if (auto done = ask_update<Update>(p.member, key, with, promised)) return *std::move(done);
    return update_alone<Update>(key, p, with, promised);
  }
  template <class Update, class Window = prefetched<engine>>
  FARSIDE_HOT outcome update_alone(const K& key, place p, const Update& with, concurrency promised,
                                   Window* have = nullptr) {
    return update<true>(key, p, with, promised, have);
  }

  /// short_ways.hpp.
  template <class Update>
  bool update_at_once(view t, place p, const K& key, const Update& with, outcome& done);
  bool create_at_once(word* at, place p, const K& key, handed<V> value);
  template <bool Owned, class Update>
  static bool change_at_once(word& value, word seen, const Update& with, outcome& done);

  template <class Update>
  outcome update_by_one_get(const quick_tables& in, handed<K> key, handed<Update> with,
                            concurrency promised);
  template <class Update>
  outcome update_further(const quick_window& seen, handed<K> key, handed<Update> with,
                         concurrency how);
  template <class Update>
  outcome create_by_one_swap(const quick_tables& in, handed<K> key, handed<Update> with,
                             concurrency promised);
  template <class Update>
  returned<V> add_by_one_atomic(handed<K> key, handed<Update> with, concurrency promised);
  template <class Update>
  std::optional<outcome> add_to_known(handed<K> key, const Update& with);
  std::optional<outcome> after_adding(typename known_cells<K, Hash>::cell_place& known,
                                      ptr<word> at, handed<K> key, word old, word amount);

  template <class Update, class Window>
  [[gnu::noinline]] outcome update_slowly(handed<K> key, handed<Update> with, concurrency promised,
                                          Window* have, bool tried_home = false) {
    place p = place_of(key);
    table* t = have != nullptr ? have->in : &tables.of(p.member);
    if constexpr (remembers && adds<Update>)
      if (auto done = add_to_known<Update>(key, with)) return *std::move(done);
    image made;
    made.tried_home = tried_home || have != nullptr;
    while (true) {
      std::optional<outcome> done = reach(*t, promised, [&](auto in) {
        if constexpr (in.is_far)
          if (have != nullptr) in.have(have->first, have->buckets.data(), have->count);
        return update_in(in, t, p, key, with, made);
      });
      if (done) return *std::move(done);
      have = nullptr;
    }
  }

  bool erase(const K& key, const place& p, concurrency promised) {
    if (asks(container_operation::erase, p.member, promised))
      if (auto done = ask(p.member, erase_there{}, key, promised)) return done->created;
    return erase_alone(key, p, promised);
  }
  template <class Window = prefetched<engine>>
  bool erase_alone(const K& key, const place& p, concurrency promised, Window* have = nullptr) {
    table* t = have != nullptr ? have->in : &tables.of(p.member);
    while (true) {
      std::optional<bool> done = reach(*t, promised, [&](auto in) {
        if constexpr (in.is_far)
          if (have != nullptr) in.have(have->first, have->buckets.data(), have->count);
        return erase_in(in, t, p, key);
      });
      if (done) return *done;
      have = nullptr;
    }
  }

  /// bulk.hpp: up to 64, in order; how many were new.
  template <class Pair, class ToUpdate>
  std::size_t update_quickly_together(std::span<const Pair> batch, concurrency with,
                                      ToUpdate to_update);

  /// An entry has come to a bucket that is not its home, and it is time to look how full the table
  /// is.
  [[gnu::noinline]] void count_away(rank_t member) { count_away(member, tables.of(member)); }

  /// bulk.hpp: claims the home buckets of some new keys together. `left`: those that are not done.
  template <class Pair>
  std::size_t claim_homes(std::span<const Pair> batch, std::vector<std::size_t>& left);

  // --- growing ---------------------------------------------------------------------------------

  /// Moves `t` to a table of `capacity` buckets, together with whoever else is at it. Returns when
  /// all has been moved or is being moved by others. Only making that table can fail.
  void move_table(rank_t member, table& t, word capacity) {
    throw_if_may_not_wait(c);
    if (t.own != nullptr)
      c.link.flush(t.rank());  // what this rank stored under concurrency::owner_only
    tables.begin_move(t, capacity);
    help(member, t);
  }

  /// Moves chunks of `t` until all have been claimed. There is no way back once a chunk has been
  /// claimed, and others wait for it. So an exception there ends the job: of a hash or a serializer
  /// that throws for a key that it took before, or for lack of ordinary memory.
  void help(rank_t member, table& t) {
    table& next = tables.next_of(member, t);
    while (true) {
      undisturbed until_moved(c);  // others wait for what it claims
      word mine = fetch_add(t.field(header::at_claimed), 1);
      if (mine >= t.chunks()) return;
      word end = std::min((mine + 1) * chunk, t.capacity);
      // Few at a time: readers of a frozen cell wait until it is marked.
      for (word i = mine * chunk; i < end; i += 16) {
        std::vector<word> buckets;
        for (word k = i; k < std::min(i + 16, end); ++k) buckets.push_back(k);
        try {
          move_buckets(member, t, next, buckets);
        } catch (const rank_failure&) {
          throw;  // of another rank: this one ends for that
        } catch (const std::exception& e) {
          cannot_move(e.what());
        } catch (...) {
          cannot_move("an exception that is no std::exception");
        }
      }
      if (fetch_add(t.field(header::at_done), 1) + 1 == t.chunks()) tables.finish_move(member);
    }
  }

  [[noreturn]] void cannot_move(const char* what) {
    end_job(
        c,
        text("farside: rank ", c.link.rank(), ": ", full_name(),
             ": an exception while a table was moved: ", what,
             ". The other ranks wait for what this one moves, and there is no way back. Hashes, "
             "and serializers of keys, must not throw for keys that are in a map."),
        false);
  }
  void move_buckets(rank_t member, table& t, table& next, const std::vector<word>& which);

  /// The table that `t` moves to, when all of `t` has been moved: helps, and waits for those who
  /// help. An operation that may create an entry goes on there: what is moved has room for certain
  /// then. Handlers, which may not wait, go on at once, and create nothing in what is not settled.
  table& settled_next(rank_t member, table& t) {
    if (may_not_wait(c)) return tables.next_of(member, t);
    help(member, t);
    while (tables.read_header(t.rank(), t.at.offset()).done < t.chunks() &&
           !FARSIDE_MUTANT(map_creates_before_settled))
      c.wait_round();
    return tables.next_of(member, t);
  }

  /// The bucket of a key is being moved: goes on where it will be.
  void await_move(table*& t, const place& p) {
    throw_if_may_not_wait(c);
    t = &settled_next(p.member, *t);
  }

  /// The table of a member when no move of it is under way.
  table& settled(rank_t member) {
    while (true) {
      table& t = tables.of(member);
      if (!has_next(t)) return t;
      settled_next(member, t);
    }
  }

  /// Empties this rank's own table; nobody else is there.
  void clear_own() {
    table& t = settled(members.rank());
    if constexpr (!in_place) release_bytes(t);
    std::vector<word> zeros(bucket_words * chunk);
    for (word i = 0; i < t.capacity; i += chunk)
      put(t.bucket_at(i, bucket_words), zeros.data(),
          std::min(chunk, t.capacity - i) * bucket_words);
    swap(t.field(header::at_used), 0);
    swap(t.field(header::at_dead), 0);
    flush(t.rank());
    forget_counts();
  }

  struct measured {
    std::uint64_t entries = 0, erased = 0, buckets = 0, probes = 0, most_probes = 0;
  };
  measured measure(table& t);  ///< what a table of this rank holds

  /// Frees the bytes of all entries in this rank's own tables; nobody else is there.
  void release_bytes(table& first);

  /// Buckets a member, so that `entries` altogether make no table grow: two thirds full, and more
  /// where so few entries will be spread unevenly (four standard deviations).
  static word capacity_for(word entries, rank_t over) {
    word each = (entries + over - 1) / over;
    return each + each / 2 + static_cast<word>(6 * std::sqrt(static_cast<double>(each))) + 8;
  }

  context& c;
  directory tables;
  concurrency_check overlaps;
  engine_choice choice;

 private:
  rank_t member_count_;
  static constexpr word largest_batch = 256;

  template <class Work>
  [[gnu::noinline]] auto reach_far(table& t, Work& work) {
    return work(far_access<entry>(c, t));
  }

  /// A bucket being prepared; its bytes are freed unless it was used.
  struct image {
    ~image() {
      if constexpr (!key_store::in_place)
        if (has_key) key_store::release(content.key());
      if constexpr (!value_store::in_place)
        if (has_value) value_store::release(content.value());
    }
    void set_key(const K& key) {
      if (!has_key) key_store::pack(key, content.key());
      has_key = true;
    }
    void set_value(const V& value) {
      drop_value();
      value_store::pack(value, content.value());
      has_value = true;
    }
    void drop_value() {
      if constexpr (!value_store::in_place)
        if (has_value) value_store::release(content.value());
      has_value = false;
    }
    entry content;
    bool has_key = false, has_value = false, tried_home = false;
  };

  template <class Update, class Access>
  std::optional<outcome> update_in(Access& in, table*& t, const place& p, const K& key,
                                   const Update& with, image& made);
  template <class Update, class Access>
  std::optional<outcome> update_cell(Access& in, table*& t, const place& p, position at, entry& e,
                                     const K& key, const Update& with);
  template <class Update, class Access>
  std::optional<outcome> update_plain(Access& in, table*& t, const place& p, position at, entry& e,
                                      const Update& with, image& made);
  template <class Access>
  std::optional<outcome> add_to(Access& in, table*& t, const place& p, word index, V step);
  template <class Access>
  std::optional<outcome> what_adding_did(Access& in, table& t, const place& p, word index, word old,
                                         word amount);
  template <class Access>
  void strain(Access& in, table& t, const place& p, word index, word value);
  bool widen_if_there_is_room(rank_t member, table& t);
  template <class Access>
  std::optional<bool> erase_in(Access& in, table*& t, const place& p, const K& key);

  /// A key whose bytes wait to be freed.
  struct dropped {
    rank_t member;
    word table_offset;
    word stored[key_store::words];
  };
  void drop_key(rank_t member, const table& t, const entry& e);
  void retire_dropped();
  static void free_key(const dropped& key) { key_store::release(key.stored); }
  std::vector<dropped> dropped_;  ///< their tables are still there
  retirement<dropped> unreachable_;

  template <class Access>
  bool freeze(Access& in, word i, entry& out, bool& alive);
  void copy_into(table& next, const entry& e);

  /// Takes an empty bucket for a new key. False: somebody else was faster.
  template <class Update, class Access>
  bool create(Access& in, position at, const place& p, const K& key, const Update& with,
              image& made, bool at_home) {
    // Nothing that can fail comes after the head is won.
    made.set_key(key);
    state what = fill(made, with.initial());
    head h(what, p.fingerprint(), at.seen.version() + 1);
    bool won = at_home ? in.take_if_empty(at.index, h) : in.change(at.index, at.seen, h);
    if (!won) return false;
    made.has_key = made.has_value = false;
    in.write_through(at.index, h, made.content, true);
    return true;
  }

  /// Puts a value into the image of a new bucket: in a cell if it fits one.
  static state fill(image& made, const V& value) {
    if constexpr (cells) {
      if (cell::fits(value)) {
        made.content.value()[0] = cell::encode(value);
        return state::cell;
      }
    }
    made.set_value(value);
    return state::plain;
  }

  /// Counts of this rank, which several threads may share.
  FARSIDE_HOT void add(word& count, word n) {
    if (c.threads == thread_level::single) [[likely]]
      count += n;
    else
      atomic(count).fetch_add(n, std::memory_order_relaxed);
  }

  /// One more bucket of a table is taken, `step` steps from its home. Counts are added up only by
  /// those who find a home taken: with few of them the table is far from full.
  void count_taken(rank_t member, table& t, word step) {
    if (for_another(step != 0 ? counted::away : counted::at_home)) return;
    count_at_home(member);
    if (step != 0) count_away(member, t);
  }
  [[gnu::noinline]] void count_away(rank_t member, table& t) {
    quick_tables::part& mine = tables.quick()[member];
    word fresh = mine.taken() - mine.told;
    word batch = std::clamp<word>(t.capacity / (32 * members.size()), 1, largest_batch);
    if (fresh >= batch) mine.told += fresh;
    if (c.threads == thread_level::single) mine.tell_again_at(mine.told + batch);  // for quick ways
    if (fresh < batch) return;
    word used = fetch_add(t.field(header::at_used), fresh) + fresh;
    if (word dead = std::exchange(pending_[member].dead, 0); dead != 0)
      fetch_add(t.field(header::at_dead), dead);
    if (used * 10 > t.capacity * 7) grow_early(member, t, used);
  }
  FARSIDE_HOT void count_at_home(rank_t member) { add(tables.quick()[member].left, ~word{0}); }
  void count_erased(rank_t member) {
    if (for_another(counted::erased)) return;
    add(erased_, 1);
    add(pending_[member].dead, 1);
  }
  void count_revived(rank_t member) {
    if (for_another(counted::revived)) return;
    add(erased_, ~word{0});
    add(pending_[member].dead, ~word{0});
  }

  /// Whether the operation is somebody else's, who will count it.
  bool for_another(counted what) {
    if (!may_not_wait(c) || FARSIDE_MUTANT(engine_owner_counts)) return false;
    on_behalf_.count = what;
    return true;
  }

  word wanted_capacity(const table& t) {
    header h = tables.read_header(t.rank(), t.at.offset());
    word dead = std::min<word>(static_cast<std::int64_t>(h.dead) < 0 ? 0 : h.dead, h.used);
    // Mostly tombstones: the same size will do.
    return 3 * (h.used - dead) < t.capacity ? t.capacity : 2 * t.capacity;
  }

  /// The table is nearly full. If there is no room for a larger one, this one is filled to the
  /// last.
  [[gnu::noinline]] void grow_early(rank_t member, table& t, word used) {
    if (used < pending_[member].no_room_until) return;
    try {
      move_table(member, t, wanted_capacity(t));
    } catch (const allocation_error&) {
      pending_[member].no_room_until = used + (t.capacity - std::min(used, t.capacity)) / 2 + 1;
    }
  }

  /// There is no bucket left, or `t` must move for another reason: a smaller step if need be.
  [[gnu::noinline]] void grow(rank_t member, table& t) {
    word want = wanted_capacity(t);
    for (word tried = want;; tried = t.capacity + (tried - t.capacity) / 2) {
      try {
        return move_table(member, t, tried);
      } catch (const allocation_error& e) {
        if (tried < t.capacity + t.capacity / 16 + 8)
          raise<allocation_error>(
              kind_name, " '", label, "' has no room for another entry on rank ", t.rank(),
              ": its table of ", t.capacity,
              " buckets is full, and a larger one does not fit. All entries are still there. ",
              std::string(e.what()));
      }
    }
  }

  static constexpr bool remembers = cells && key_store::in_place;

  void remember(position at, table& t, const K& key) {
    if constexpr (remembers)
      if (t.direct == nullptr && c.threads == thread_level::single)
        known_.remember(tables.epoch, t, at.index, t.bucket_at(at.index, bucket_words) + 2, key);
  }

  known_cells<K, Hash> known_;

  void forget_counts() {
    for (counts& mine : pending_) mine = {};
    for (rank_t m = 0; m < member_count_; ++m) {
      quick_tables::part& mine = tables.quick()[m];
      mine.left = mine.until = mine.told = 0;
    }
    erased_ = 0;
    known_.clear();
  }

  struct counts {
    word dead = 0;           ///< erased, less revived, since it was told
    word no_room_until = 0;  ///< growth was in vain, and is not tried before so many are used
  };
  std::vector<counts> pending_;  ///< of each member
  struct {
    counted count = counted::nothing;
    bool strained = false;
  } on_behalf_;      ///< what the handler under way has done
  word erased_ = 0;  ///< by this rank, less those it has revived
};

}  // namespace detail::map
}  // namespace far::inline FARSIDE_BACKEND

#include <farside/containers/detail/map/asking.hpp>
#include <farside/containers/detail/map/changes.hpp>
#include <farside/containers/detail/map/growth.hpp>
#include <farside/containers/detail/map/short_ways.hpp>

#include <farside/containers/detail/map/quick_ways.hpp>
