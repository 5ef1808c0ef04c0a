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
// Specialise far::hash for anything else; far::mix helps.
#pragma once

#include <farside/base/mixing.hpp>
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
  /// Whether the hash is far::mix of the key's 64 bits. Specialisations of users do not say so.
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

/// Strings; views of strings are hashed without a copy.
template <>
struct hash<std::string> {
  using is_transparent = void;
  std::uint64_t operator()(std::string_view key) const {
    return detail::hash_bytes(key.data(), key.size());
  }
};

template <class T>
struct hash<ptr<T>> {
  std::uint64_t operator()(ptr<T> key) const { return mix(key.raw()); }
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
