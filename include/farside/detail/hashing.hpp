// far::hash<K>: what containers hash keys with unless told otherwise. Equal keys have equal hashes
// on every rank and machine (little endian), and all 64 bits are good: neighbouring integers, or
// strings that differ in one character, differ in half of the bits.
//
//   bool, characters, integers, enums, far::ptr     mixed
//   float, double                                   their bits mixed; -0.0 is 0.0
//   strings, spans and vectors of such integers     16 bytes at a time, by one wide multiplication
//   pairs, tuples, other ranges                     element by element, in order
//   types with a std::hash                          that, mixed: std::hash<int> is the identity
//   types with a far::serializer                    their fixed form, or serialized bytes
//   trivially copyable types without padding        their bytes
//
// Specialise far::hash for anything else; detail::mix helps.
#pragma once

#include <farside/core/ptr.hpp>
#include <farside/core/serialization.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace far::inline FARSIDE_BACKEND {

template <class K>
struct hash;

namespace detail {

/// What mix() adds and multiplies by; map/wide_places.hpp does the same to four words.
inline constexpr std::uint64_t mix_offset = 0x9e37'79b9'7f4a'7c15,
                               mix_first = 0xbf58'476d'1ce4'e5b9,
                               mix_second = 0x94d0'49bb'1331'11eb;

/// A bijection of 64 bits in which each bit of the result depends on each bit of `x`.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += mix_offset;
  x = (x ^ x >> 30) * mix_first;
  x = (x ^ x >> 27) * mix_second;
  return x ^ x >> 31;
}

/// Both halves of a 128-bit product, one over the other.
constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using wide = unsigned __int128;
  wide product = static_cast<wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// The hash of a sequence from that of its beginning and of its next element.
constexpr std::uint64_t hash_append(std::uint64_t before, std::uint64_t next) {
  return mix(before * 0xa076'1d64'78bd'642f + next);
}

/// Maps a hash to 0 .. n - 1 by its high bits, evenly. Its low bits stay good for other uses.
constexpr std::uint64_t reduce_hash(std::uint64_t hash, std::uint64_t n) {
  __extension__ using wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<wide>(hash) * n >> 64);
}

template <class Word>
std::uint64_t read_word(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

inline std::uint64_t hash_bytes(const void* data, std::size_t n) {
  constexpr std::uint64_t a = 0xe703'7ed1'a0b4'28db, b = 0x8ebc'6af0'9c88'c6e3;
  auto* at = static_cast<const std::byte*>(data);
  std::uint64_t h = n * 0x5899'65cc'7537'4cc3;
  std::uint64_t first = 0, last = 0;  // the last 16 bytes, or all if there are fewer
  if (n > 16) {
    const std::byte* end = at + n;
    for (; end - at > 16; at += 16)
      h = folded_product(read_word<std::uint64_t>(at) ^ a, read_word<std::uint64_t>(at + 8) ^ h);
    first = read_word<std::uint64_t>(end - 16);
    last = read_word<std::uint64_t>(end - 8);
  } else if (n >= 8) {
    first = read_word<std::uint64_t>(at);
    last = read_word<std::uint64_t>(at + n - 8);
  } else if (n >= 4) {
    first = read_word<std::uint32_t>(at);
    last = read_word<std::uint32_t>(at + n - 4);
  } else if (n > 0) {
    first = read_word<std::uint8_t>(at) << 16 | read_word<std::uint8_t>(at + n / 2) << 8 |
            read_word<std::uint8_t>(at + n - 1);
  }
  return mix(folded_product(first ^ b, last ^ h));
}

/// Types whose values are equal exactly if their bytes are.
template <class T>
concept equal_by_bytes = plain<T> && std::has_unique_object_representations_v<T>;

template <class T>
concept string_like = requires(const T& s) {
  typename T::traits_type;
  { std::basic_string_view<typename T::value_type, typename T::traits_type>(s) };
};

template <class T>
inline constexpr bool is_unordered = false;
template <class K, class H, class E, class A>
inline constexpr bool is_unordered<std::unordered_set<K, H, E, A>> = true;
template <class K, class V, class H, class E, class A>
inline constexpr bool is_unordered<std::unordered_map<K, V, H, E, A>> = true;

template <class T>
concept has_standard_hash = requires(const T& value) {
  { std::hash<T>()(value) } -> std::convertible_to<std::size_t>;
};

template <class T>
concept tuple_like = requires { std::tuple_size<T>::value; };

template <class T>
std::uint64_t hash_of(const T& value) {
  return hash<T>()(value);
}

}  // namespace detail

/// A function object; the same value on all ranks. No communication.
template <class K>
struct hash {
  /// Whether it is detail::mix of the key's 64 bits. What specialises far::hash does not say so.
  static constexpr bool mixes_words = std::is_integral_v<K> && sizeof(K) == 8;

  std::uint64_t operator()(const K& key) const {
    using namespace detail;
    static_assert(!std::is_pointer_v<K>,
                  "far::hash of a pointer: it means nothing on another rank. Use a far::ptr, or "
                  "what it points to.");
    static_assert(!is_unordered<K>,
                  "far::hash of an unordered container: equal ones may have their elements in "
                  "different orders. Use std::set or std::map as the key.");
    if constexpr (std::is_integral_v<K>) {
      return mix(static_cast<std::uint64_t>(key));
    } else if constexpr (std::is_enum_v<K>) {
      return mix(static_cast<std::uint64_t>(static_cast<std::underlying_type_t<K>>(key)));
    } else if constexpr (std::same_as<K, float>) {
      return mix(std::bit_cast<std::uint32_t>(key == 0 ? 0.0F : key));
    } else if constexpr (std::same_as<K, double>) {
      return mix(std::bit_cast<std::uint64_t>(key == 0 ? 0.0 : key));
    } else if constexpr (string_like<K>) {
      return hash_bytes(key.data(), key.size() * sizeof(*key.data()));
    } else if constexpr (tuple_like<K> && !std::ranges::range<K>) {
      return std::apply(
          [](const auto&... item) {
            std::uint64_t h = sizeof...(item);
            ((h = hash_append(h, hash_of(item))), ...);
            return h;
          },
          key);
    } else if constexpr (std::ranges::input_range<const K>) {
      return of_range(key);
    } else if constexpr (has_standard_hash<K>) {
      return mix(std::hash<K>()(key));
    } else if constexpr (equal_by_bytes<K>) {
      return hash_bytes(&key, sizeof key);
    } else if constexpr (packs_to_fixed<K>) {
      return hash_of(serializer<K>::pack(key));
    } else if constexpr (saves_and_loads<K>) {
      auto bytes = to_bytes(key);
      return hash_bytes(bytes.data(), bytes.size());
    } else {
      static_assert(has_standard_hash<K>,
                    "far::hash does not know how to hash this type: it has no std::hash and no "
                    "far::serializer, and its bytes do not tell equal values (padding, "
                    "floating-point members). Specialise far::hash<K> or std::hash<K>.");
    }
  }

 private:
  static std::uint64_t of_range(const K& key) {
    using Item = std::ranges::range_value_t<const K>;
    if constexpr (std::ranges::contiguous_range<const K> && detail::equal_by_bytes<Item>) {
      return detail::hash_bytes(std::ranges::data(key), std::ranges::size(key) * sizeof(Item));
    } else {
      std::uint64_t h = 0;
      for (const auto& item : key)
        h = detail::hash_append(h, detail::hash_of(static_cast<const Item&>(item)));
      return h;
    }
  }
};

/// Strings also by what views them, without a copy.
template <>
struct hash<std::string> {
  using is_transparent = void;
  std::uint64_t operator()(std::string_view key) const {
    return detail::hash_bytes(key.data(), key.size());
  }
};

template <class T>
struct hash<ptr<T>> {
  std::uint64_t operator()(ptr<T> key) const { return detail::mix(key.raw()); }
};

namespace detail {

/// The 64 bits that containers use: of far::hash as they are, of any other function object mixed.
template <class Hash, class K>
std::uint64_t mixed_hash(const Hash& hash_function, const K& key) {
  if constexpr (std::same_as<Hash, hash<K>>)
    return hash_function(key);
  else
    return mix(static_cast<std::uint64_t>(hash_function(key)));
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
