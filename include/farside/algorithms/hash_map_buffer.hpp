// far::hash_map_buffer: changes to a hash map that are gathered, combined by key, and sent to the
// owners in large messages, which apply them. For many changes whose results nobody waits for:
// counting, building a table.
//
//   far::hash_map<std::string, int> counts(1 << 20);
//   far::hash_map_buffer buffer(counts);
//   for (const auto& word : words) buffer.accumulate(word, 1);
//   buffer.flush();                                    // collective: all of them are in the map
//
// Changes of one rank to one key take effect in the order in which they were made; those of
// different ranks in any order. A change has taken effect when flush returns, perhaps earlier.
#pragma once

#include <farside/algorithms/exchange.hpp>
#include <farside/containers/hash_map.hpp>
#include <farside/core/detail/together.hpp>

#include <bit>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

/// One thread of a rank at a time may use it. `Op` is what accumulate combines values with.
template <class Map, class Op = std::plus<>>
class hash_map_buffer {
 public:
  using key_type = typename Map::key_type;
  using mapped_type = typename Map::mapped_type;

  struct options {
    std::size_t message_bytes = 0;  ///< of the exchange; 0: its measured default
    /// How many keys wait to be combined with another of the same key; 0: none. A power of two.
    std::size_t combining = std::size_t{1} << 13;
    /// What else may be done to the map between the first change and the end of flush.
    /// concurrency::owner_only, nothing: where ranks share no memory owners then change their parts
    /// without atomics.
    concurrency alongside = concurrency::everything;
  };

  /// Collective. The map must outlive the buffer.
  // By value: g++ 12 deduces a reference to options that are not const, which {...} are not.
  explicit hash_map_buffer(Map& map, options with, Op op = {})
      : map_(&map),
        op_(op),
        alongside_(with.alongside),
        waiting_(slots_for(with.combining)),  // first, as all members refuse too large a number
        exchange_(std::make_unique<exchange<item>>(
            container_options{.name = map.name() + " buffer", .over = map.members()},
            with.message_bytes)) {}
  explicit hash_map_buffer(Map& map) : hash_map_buffer(map, options{}) {}
  /// Collective. `op` combines: `far::hash_map_buffer marks(map, std::bit_or<>());`
  template <std::same_as<Op> Given>
  hash_map_buffer(Map& map, Given op) : hash_map_buffer(map, options{}, std::move(op)) {}

  /// As the map's operations of the same names. One-sided; no communication, for most of them.
  void insert(const key_type& key, const mapped_type& value) { add(key, value, what::insert); }
  void insert_or_assign(const key_type& key, const mapped_type& value) {
    add(key, value, what::assign);
  }
  void accumulate(const key_type& key, const mapped_type& value) {
    add(key, value, what::accumulate);
  }

  /// Collective: returns when the changes of all members are in the map. Ends with an all_reduce
  /// and a barrier of the map's team. Throws far::allocation_error on all members if one of them
  /// has no room: other changes are in the map, and what found no room is kept for the next flush.
  /// Throws on all, too, if the operator or a serializer has thrown on one: the change that it was
  /// called for is left out, and all others are in the map.
  void flush() {
    auto note = detail::calling<"hash_map_buffer::flush">(map_->implementation());
    auto again = std::exchange(no_room_, {});
    apply(std::span<const item>(again));
    for (waiting& slot : waiting_)
      if (slot.used) {
        slot.used = false;
        noting_failures([&] { send(slot); });  // the others wait for this member in finish
      }
    exchange_->finish([this](auto items) { this->apply(items); });
    detail::do_together(
        map_->members(), text_of_flush(),
        [this] {
          if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
          if (!no_room_.empty()) std::rethrow_exception(why_);
        },
        [] {});
    barrier(map_->members());
  }

 private:
  static std::size_t slots_for(std::size_t combining) {
    detail::require_possible("hash_map_buffer: keys that wait to be combined", combining,
                             sizeof(waiting));
    return combining == 0 ? 0 : std::bit_ceil(combining);
  }

  using engine = std::remove_reference_t<decltype(std::declval<Map&>().implementation())>;
  enum class what : std::uint8_t { insert, assign, accumulate };
  using item = std::tuple<key_type, mapped_type, what>;

  struct waiting {
    key_type key{};
    mapped_type value{};
    std::uint64_t hash = 0;
    what kind = what::insert;
    bool used = false;
  };

  void add(const key_type& key, const mapped_type& value, what kind) {
    std::uint64_t hash = engine::hash_of(key);
    if (waiting_.empty()) return send(hash, key, value, kind);
    // Low bits: the high ones choose the owner.
    waiting& slot = waiting_[hash & (waiting_.size() - 1)];
    if (slot.used) {
      if (slot.hash == hash && slot.key == key && merge(slot, value, kind)) return;
      send(slot);
    }
    slot.key = key;
    slot.value = value;
    slot.hash = hash;
    slot.kind = kind;
    slot.used = true;
  }

  /// Combines two changes of one key. False: they cannot be combined, the first must be sent.
  bool merge(waiting& first, const mapped_type& value, what kind) {
    switch (kind) {
      case what::insert:  // the key is there already by then
        return true;
      case what::assign:
        first.value = value;
        first.kind = what::assign;
        return true;
      case what::accumulate:
        if (first.kind == what::insert) return false;  // what will be there is not known
        first.value = static_cast<mapped_type>(op_(first.value, value));
        return true;
    }
    return false;
  }

  void send(waiting& slot) { send(slot.hash, slot.key, slot.value, slot.kind); }
  void send(std::uint64_t hash, const key_type& key, const mapped_type& value, what kind) {
    rank_t to = detail::map::key_location(hash, map_->members().size()).member;
    exchange_->send(to, item(key, value, kind), [this](auto items) { this->apply(items); });
  }

  std::string text_of_flush() const {
    return text("a flush of '", map_->name(),
                " buffer' (what finds no room is kept, and the next flush tries again)");
  }

  /// Keeps what `work` throws until flush tells it.
  template <class Work>
  void noting_failures(Work work) {
    try {
      work();
    } catch (const rank_failure&) {
      throw;
    } catch (...) {
      if (!failure_) failure_ = std::current_exception();
    }
  }

  /// The owner's part: changes its own buckets, many of which are on their way to the cache
  /// together. It does not throw, as others wait for it in an exchange. Changes after one that found
  /// no room wait behind it, so that those of a key keep their order.
  template <class Items>
  void apply(Items items) {
    namespace map = detail::map;
    engine& e = map_->implementation();
    auto keep = [&](std::size_t from) {
      no_room_.insert(no_room_.end(), items.begin() + static_cast<std::ptrdiff_t>(from),
                      items.end());
    };
    if (!no_room_.empty()) return keep(0);
    bool alone = alongside_ == concurrency::owner_only || alongside_ == concurrency::nothing;
    concurrency with = alone ? concurrency::owner_only : concurrency::everything;
    std::span<const item> all(items.data(), items.size());
    map::with_windows<true>(
        e, all.size(), concurrency::owner_only,
        [&](std::size_t i) -> const key_type& { return std::get<0>(all[i]); },
        [&](std::size_t i, const auto& where, auto*) {
          if (!no_room_.empty()) return;
          const auto& [key, value, kind] = all[i];
          noting_failures([&] {
            try {
              switch (kind) {
                case what::insert:
                  change(e, where, key, map::keep<mapped_type>{value}, with);
                  break;
                case what::assign:
                  change(e, where, key, map::replace<mapped_type>{value}, with);
                  break;
                case what::accumulate:
                  change(e, where, key, map::combine<mapped_type, Op>{value, op_}, with);
                  break;
              }
            } catch (const allocation_error&) {
              why_ = std::current_exception();
              keep(i);
            }
          });
        });
  }

  /// Of a key that this rank holds.
  template <class Update>
  static void change(engine& e, const detail::map::key_location& where, const key_type& key,
                     const Update& by, concurrency with) {
    using namespace detail::map;
    if (!try_update(e.tables.fast(), &e, where, key, by, with, [](auto&&) {})) [[unlikely]]
      e.template update<if_blocked::wait, Update>(key, by, with);
  }

  Map* map_;
  Op op_;
  concurrency alongside_;
  std::vector<waiting> waiting_;
  std::unique_ptr<exchange<item>> exchange_;
  std::vector<item> no_room_{};  ///< changes that the owner, this rank, had no room for, in order
  std::exception_ptr why_{};
  std::exception_ptr failure_{};  ///< the first one that was not for lack of room, until flush
};

template <class Map, class Op>
  requires std::invocable<Op&, const typename Map::mapped_type&, const typename Map::mapped_type&>
hash_map_buffer(Map&, Op) -> hash_map_buffer<Map, Op>;

}  // namespace far::inline FARSIDE_BACKEND
