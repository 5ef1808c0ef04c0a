// An object of a store: a value that does not fit a bucket of the index, in its owner's segment.
//
//   | head | cell 0 | cell 1 | ... | seal | length | body ... |        64-bit words
//
//   head     that of a bucket (map/bucket.hpp): version, fingerprint of the key, and a state:
//            live, moved (a longer value took its place, elsewhere) or dead (erased), for good
//   cells    each the number of one member, by atomics only (map::cell). The flag `absent` is set
//            when the object is being erased: additions do not count from then on
//   seal     over version, place, length and body, as a bucket's; where memory is coherent the
//            version, stored last
//   length   in bytes, of values of variable length
//   body     masked with the version where memory is not coherent
//
// An object is written, and completed, before the index names it, and its memory is not used again
// before nobody remembers it. So its head is what settles whether a key is there, also for those
// who have remembered the place, and who changes the value has won the head by a compare-and-swap.
#pragma once

#include <farside/base/mutants.hpp>
#include <farside/base/word_copy.hpp>
#include <farside/containers/detail/store/index.hpp>
#include <farside/core/rma.hpp>

#include <memory>
#include <tuple>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::stores {

using map::cell;
using map::head;

inline constexpr auto live = map::state::plain, moved = map::state::cell, dead = map::state::erased;

template <class M>
constexpr void require_cell() {
  static_assert(std::is_integral_v<M> && !std::is_same_v<M, bool> && sizeof(M) <= 8,
                "far::cells_of: a cell is a member of an integer type, of up to 8 bytes");
}

/// The words of objects with values V.
template <class V>
struct object {
  static constexpr bool fixed = fixed_length<V>;
  static constexpr std::size_t cells = cells_of<V>::count;
  static constexpr std::size_t seal_at = 1 + cells;
  static constexpr std::size_t length_at = seal_at + 1;
  /// Bodies lie on 16 bytes, as objects do.
  static constexpr std::size_t body_at = (seal_at + (fixed ? 1 : 2) + 1) & ~std::size_t{1};
  static constexpr std::size_t sealed_from = seal_at + 1;
  static_assert(fixed || cells == 0,
                "far::cells_of: values with cells have a fixed length: a longer value would take "
                "another place, and additions to its cells would be lost on the way");

  static std::size_t words_for(std::size_t bytes) { return (body_at + (bytes + 7) / 8 + 1) & ~1UL; }

  /// Calls `f(index, member)` for each cell.
  template <class F>
  static void each_cell([[maybe_unused]] F f) {
    if constexpr (cells != 0) {
      std::size_t i = 0;
      std::apply([&](auto... member) { (f(i++, member), ...); }, cells_of<V>::members);
    }
  }
  /// The bytes of a value, from `body_at` on, in an image of the object whose other words are zero.
  static std::vector<word> image_of(const V& value) {
    std::vector<word> image;
    if constexpr (fixed) {
      image.resize(words_for(sizeof(typename stored<V>::form)));
      stored<V>::pack(value, image.data() + body_at);
    } else {
      auto bytes = to_bytes(value);
      image.resize(words_for(bytes.size()));
      image[length_at] = bytes.size();
      if (!bytes.empty()) std::memcpy(image.data() + body_at, bytes.data(), bytes.size());
    }
    each_cell([&](std::size_t i, auto member) {
      const auto number = value.*member;
      if (!cell::fits(number))
        raise("store: a cell holds numbers from -2^59 to 2^59 - 1, and ", number,
              " is none. Declare the member no cell, or keep smaller numbers in it.");
      image[1 + i] = cell::encode(number);
    });
    return image;
  }
  /// The value of an image that is whole.
  static V value_in(const word* image) {
    if constexpr (fixed) {
      V value = stored<V>::read(image + body_at);
      each_cell([&](std::size_t i, auto member) {
        using M = std::remove_reference_t<decltype(value.*member)>;
        value.*member = cell::decode<M>(image[1 + i]);
      });
      return value;
    } else {
      const auto* bytes = reinterpret_cast<const std::byte*>(image + body_at);
      return from_bytes<V>(std::span(bytes, static_cast<std::size_t>(image[length_at])));
    }
  }

  static word salt(head h, ptr<word> at) { return mix(at.raw() ^ mix(h.version())); }
  /// Masks what is sealed, or takes the mask off. A word that was the same in two versions would
  /// look as if it had landed before it has, and could land on the next version.
  static void mask(word* image, std::size_t words, head h, ptr<word> at) {
    if (FARSIDE_MUTANT(store_words_not_masked)) return;
    word by = mix(salt(h, at));
    for (std::size_t i = sealed_from; i < words; ++i) image[i] ^= by += mix_offset;
  }
  static word seal_of(const word* image, std::size_t words, head h, ptr<word> at) {
    return detail::seal_of(image + sealed_from, words - sealed_from, salt(h, at));
  }
  /// Makes an image that of version `h` at `at`.
  static void seal(std::vector<word>& image, head h, ptr<word> at, bool coherent) {
    image[0] = h.raw();
    if (!coherent) mask(image.data(), image.size(), h, at);
    image[seal_at] = coherent ? h.version() : seal_of(image.data(), image.size(), h, at);
  }
};

/// Which cell of V a member is; none: their number.
template <class V, class M, class C>
std::size_t cell_of(M C::* which) {
  std::size_t found = object<V>::cells;
  object<V>::each_cell([&](std::size_t i, auto member) {
    if constexpr (std::is_same_v<decltype(member), M C::*>)
      if (member == which) found = i;
  });
  return found;
}

/// Where an object lies, and how many words there are for it.
struct place {
  ptr<word> at{};
  word words = 0;
};

enum class seen { whole, dead, moved, blocked };

/// What was read of an object.
struct object_image {
  head top{};
  std::unique_ptr<word[]> words;
  bool erasing = false;  ///< a cell says that its object is being erased
};

/// Where an object lies in this process, where memory is coherent.
inline word* reach(context& c, const place& of) {
  return static_cast<word*>(c.link.address(of.at.rank(), of.at.offset()));
}

/// What its words say, of which the seal fits, or does not.
template <class V>
seen judge(object_image& image, bool sealed) {
  image.erasing = false;
  for (std::size_t i = 0; i < object<V>::cells; ++i)
    image.erasing |= (image.words[1 + i] & cell::absent) != 0;
  if (image.top.what() == moved) return seen::moved;
  if (image.top.what() != live && !FARSIDE_MUTANT(store_dead_taken_for_live)) return seen::dead;
  return sealed ? seen::whole : seen::blocked;
}

/// What a get of all of an object has brought, where memory is not coherent.
template <class V>
seen judge_fetched(object_image& image, const place& from) {
  using layout = object<V>;
  word* words = image.words.get();
  image.top = head(words[0]);
  const bool sealed =
      layout::seal_of(words, from.words, image.top, from.at) == words[layout::seal_at] ||
      FARSIDE_MUTANT(store_seal_not_checked);
  const seen what = judge<V>(image, sealed);
  if (what == seen::whole) layout::mask(words, from.words, image.top, from.at);
  return what;
}

/// Reads the first `words` words of an object where memory is coherent. The order of its loads is
/// that of map::direct_access: a writer changes the head before any other word, and the seal last.
template <class V>
seen look_at(context& c, const place& from, object_image& to, std::size_t words) {
  using layout = object<V>;
  word *image = to.words.get(), *base = reach(c, from);
  note(c, operation::get, from.at.rank(), words * 8, true);
  while (true) {
    to.top = head(map::atomic(base[0]).load(std::memory_order_seq_cst));
    const bool sealed =
        map::atomic(base[layout::seal_at]).load(std::memory_order_acquire) == to.top.version() ||
        FARSIDE_MUTANT(store_seal_not_checked);
    copy_words<true>(image + 1, base + 1, from.at.offset() + 8, (words - 1) * 8);
    acquire_fence();
    image[0] = map::atomic(base[0]).load(std::memory_order_seq_cst);
    if (image[0] == to.top.raw() || FARSIDE_MUTANT(store_head_looked_at_once))
      return judge<V>(to, sealed);
  }
}

/// Reads an object, all of one version; or its first words alone, with the same promise, if `all` is
/// not wanted: head, cells and seal. Without coherence nothing shows that a version has come but all
/// of it.
template <if_blocked B, class V>
seen read_object(context& c, const place& from, object_image& to, bool all = true) {
  if (!to.words) to.words = std::make_unique_for_overwrite<word[]>(from.words);
  for (bool flushed = false;;) {
    seen what;
    if (c.link.coherent()) {
      what = look_at<V>(c, from, to, all ? from.words : object<V>::sealed_from);
    } else {
      get(from.at, to.words.get(), from.words);
      what = judge_fetched<V>(to, from);
    }
    if (what != seen::blocked || B == if_blocked::give_up) return what;
    if (!std::exchange(flushed, true)) flush(from.at.rank());
    c.wait_round();
  }
}

/// Writes a new object, which nobody knows yet, and completes it.
template <class V>
void write_object(context& c, const place& to, std::vector<word>& image, head h) {
  object<V>::seal(image, h, to.at, c.link.coherent());
  if (FARSIDE_MUTANT(store_object_unflushed))
    put(to.at, image.data(), image.size());
  else
    put_through(to.at, image.data(), image.size());
}

/// Writes the value of version `h`, whose head was won, and completes it.
template <class V>
void write_value(context& c, const place& to, std::vector<word>& image, head h) {
  using layout = object<V>;
  layout::seal(image, h, to.at, c.link.coherent());
  constexpr std::size_t first = layout::seal_at;
  if (!c.link.coherent()) {
    put_through(to.at + static_cast<std::ptrdiff_t>(first), image.data() + first,
                image.size() - first);
    return;
  }
  note(c, operation::put, to.at.rank(), (image.size() - first) * 8, false);
  word* base = reach(c, to);
  release_fence();  // the head comes before all of this, see read_object()
  copy_words<false>(base + first + 1, image.data() + first + 1, to.at.offset() + 8 * (first + 1),
                    (image.size() - first - 1) * 8);
  map::atomic(base[first]).store(image[first], map::publish_order);
  note(c, operation::flush, to.at.rank(), 0, true);
}

/// Whether the head of an object was `expected` and is now `desired`.
inline bool change_head(const place& of, head expected, head desired) {
  return compare_swap(of.at, expected.raw(), desired.raw()) == expected.raw() ||
         FARSIDE_MUTANT(store_lost_race_taken_for_won);
}

/// An operation that ends with an atomic: gets of others that begin later see it.
inline void settle(context& c, const place& of) { settle_atomics(c.link, of.at.rank()); }

}  // namespace far::inline FARSIDE_BACKEND::detail::stores
