// Checked builds: are promises kept? Two operations overlap if no barrier of the team lies between
// them, so each rank publishes, for the time between two barriers (an epoch), which operations it
// has made and what they were promised, and looks at what the others have published.
//
//   record of a rank, in its own segment:   | kind 0 | kind 1 | ... | kind 6 |
//   of each kind of operation:              | {epoch, promised} | key, as text ... |
//
// A rank publishes an operation only if it is the first of its kind in the epoch, or promises less
// than those before it: what follows changes nothing. It writes the text, flushes, writes the word
// by an atomic, flushes, and only then reads the others' words. Of two ranks that break each
// other's promise, whichever reads last has published before (store buffering,
// docs/memory_model.md), so one of the two sees the other.
#pragma once

#include <farside/core/atomics.hpp>
#include <farside/core/concurrency.hpp>
#include <farside/core/detail/container.hpp>

#include <array>
#include <bit>
#include <cstring>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// As long as it lives nothing is counted, if so wanted: the checks are no part of what an operation
/// costs.
class uncounted {
 public:
  explicit uncounted(context& c, bool wanted = true) : c_(c) {
    if (wanted) [[unlikely]]
      pause();
  }
  ~uncounted() {
    if (counted_) [[unlikely]]
      resume();
  }
  uncounted(const uncounted&) = delete;

 private:
  [[gnu::noinline]] void pause() {
    std::lock_guard lock(c_.mutex);
    counted_ = c_.counts.pause();
  }
  [[gnu::noinline]] void resume() {
    std::lock_guard lock(c_.mutex);
    c_.counts.resume();
  }

  context& c_;
  bool counted_ = false;
};

#if FARSIDE_CHECKED

class concurrency_check {
 public:
  /// Collective.
  explicit concurrency_check(shared_state& of) : of_(of) {
    all_ = alloc_together<record>(of.members, of.full_name(), kinds);
    mine_ = all_[of.members.rank()];
    put(mine_, std::vector<record>(kinds));
    flush(mine_.rank());
    synchronize(*of.where, of.members.members());
  }
  ~concurrency_check() {
    if (!of_.constructed && mine_) dealloc(mine_);
  }
  void release() { dealloc(mine_); }

  /// A barrier of the team has passed.
  void next_epoch() {
    ++epoch_;
    published_.fill({});
  }

  /// One operation of `kind`, which may run together with `promised` only. `subject()` is the text
  /// of its key or element.
  template <class Subject>
  void check(container_operation kind, const char* name, concurrency promised, Subject subject) {
    unsigned index = static_cast<unsigned>(std::countr_zero(static_cast<std::uint32_t>(kind)));
    published& before = published_[index];
    if (before.any && includes(promised, before.promised)) return;
    before.promised = before.any ? before.promised & promised : promised;
    before.any = true;
    std::string key = subject();
    uncounted aside(*of_.where);
    publish(index, before.promised, name, key);
    for (rank_t member = 0; member < all_.size(); ++member)
      if (member != of_.members.rank()) compare(member, kind, name, promised, key);
    // Its own operations overlap too: what one has promised, the other may break.
    for (unsigned other = 0; other < kinds; ++other) {
      auto other_kind = static_cast<container_operation>(1U << other);
      if (other == index || !published_[other].any) continue;
      if (!includes(promised, other_kind) || !includes(published_[other].promised, kind))
        if (includes(promised, concurrency::owner_only) == false ||
            includes(published_[other].promised, concurrency::owner_only) == false)
          report(of_.members.rank(), other, published_[other].promised, name, promised, key);
    }
  }

 private:
  static constexpr unsigned kinds = 7;
  static constexpr std::size_t text_bytes = 56;
  struct record {
    std::uint64_t word = 0;  ///< epoch << 32 | 1 << 31 | promised, by atomics
    char name[16] = {};
    char key[text_bytes - 16] = {};
  };
  struct published {
    bool any = false;
    concurrency promised = concurrency::everything;
  };

  ptr<std::uint64_t> word_of(ptr<record> at) const { return pointer_cast<std::uint64_t>(at); }

  void publish(unsigned index, concurrency promised, const char* name, const std::string& key) {
    record entry;
    std::strncpy(entry.name, name, sizeof entry.name - 1);
    std::strncpy(entry.key, key.c_str(), sizeof entry.key - 1);
    ptr<record> at = mine_ + index;
    auto* from = reinterpret_cast<const std::byte*>(&entry) + sizeof entry.word;
    put(pointer_cast<std::byte>(at) + sizeof entry.word, from, sizeof entry - sizeof entry.word);
    flush(at.rank());
    atomic_store(word_of(at), std::uint64_t{epoch_} << 32 | std::uint64_t{1} << 31 |
                                  static_cast<std::uint64_t>(promised));
    flush();
  }

  void compare(rank_t member, container_operation kind, const char* name, concurrency promised,
               const std::string& key) {
    for (unsigned other = 0; other < kinds; ++other) {
      std::uint64_t word = atomic_load(word_of(all_[member] + other));
      if (word >> 32 != epoch_ || !(word >> 31 & 1)) continue;
      auto theirs = static_cast<concurrency>(word & 0x7fff'ffff);
      // Operations under owner_only touch what each rank owns: those of two ranks never meet.
      if (includes(theirs & promised, concurrency::owner_only)) continue;
      auto other_kind = static_cast<container_operation>(1U << other);
      if (!includes(promised, other_kind) || !includes(theirs, kind))
        report(member, other, theirs, name, promised, key);
    }
  }

  [[noreturn]] void report(rank_t member, unsigned other, concurrency theirs, const char* name,
                           concurrency promised, const std::string& key) {
    record entry = get(all_[member] + other);
    raise(
        "a promise was broken on ", of_.kind_name, " '", of_.label, "': ", name, "(", key,
        ") on rank ", of_.members.world_rank(of_.members.rank()),
        ", which may run at the same time as ", promised, ", and ", std::string(entry.name), "(",
        std::string(entry.key), ") on rank ", of_.members.world_rank(member),
        ", which may run at the same time as ", theirs,
        ", have no barrier of the team between them. Promise less, or put a barrier between them.");
  }

  shared_state& of_;
  ptr<record> mine_;
  std::vector<ptr<record>> all_;
  std::array<published, kinds> published_{};
  std::uint32_t epoch_ = 0;
};

#else

/// Does nothing, in builds that check nothing.
struct concurrency_check {
  explicit concurrency_check(shared_state&) {}
  void release() {}
  void next_epoch() {}
  template <class Subject>
  void check(container_operation, const char*, concurrency, Subject) {}
};

#endif

/// The text of a key or element, for messages.
template <class T>
std::string describe(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string>)
    return '"' + std::string(value) + '"';
  else if constexpr (std::is_arithmetic_v<T>)
    return std::to_string(value);
  else if constexpr (requires { to_text(value); })
    return to_text(value);
  else
    return "a key";
}

}  // namespace far::inline FARSIDE_BACKEND::detail
