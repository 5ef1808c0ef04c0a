// What the bytes of a serialized type are, in words: files of saved maps have them, so that a map
// of other types does not take those bytes for its own. The words are the same on every machine,
// for every back end and compiler.
//
//   long, long long          int64           std::string                  string<char>
//   an enum of int           int32           std::vector<double>          vector<float64>
//   std::pair<int, bool>     (int32, bool)   a class that is its bytes    struct of 24 bytes
//
// Two classes of one size that are their bytes, or two with functions to save and load them, cannot
// be told apart.
#pragma once

#include <farside/core/serialization.hpp>

#include <limits>
#include <string>

namespace far::inline FARSIDE_BACKEND::detail {

template <class T>
struct kind;

template <class T>
std::string words_of() {
  return kind<T>::words();
}

/// The words of many, with commas.
template <class First, class... Rest>
std::string kinds_of() {
  std::string all = words_of<First>();
  ((all += ", " + words_of<Rest>()), ...);
  return all;
}

template <class T>
struct kind {
  static std::string words() {
    const std::string bits = std::to_string(8 * sizeof(T));
    if constexpr (std::is_same_v<T, bool>)
      return "bool";
    else if constexpr (std::is_same_v<T, char>)
      return "char";
    else if constexpr (std::is_same_v<T, char8_t> || std::is_same_v<T, char16_t> ||
                       std::is_same_v<T, char32_t> || std::is_same_v<T, wchar_t>)
      return "char" + bits;
    else if constexpr (std::is_integral_v<T>)
      return (std::is_signed_v<T> ? "int" : "uint") + bits;
    else if constexpr (std::is_enum_v<T>)
      return words_of<std::underlying_type_t<T>>();
    else if constexpr (std::is_same_v<T, long double>)
      return "long double of " + std::to_string(std::numeric_limits<T>::digits) + " bits";
    else if constexpr (std::is_floating_point_v<T>)
      return "float" + bits;
    else if constexpr (plain<T>)
      return "struct of " + std::to_string(sizeof(T)) + " bytes";
    else if constexpr (packs_to_fixed<T>)
      return words_of<typename serializer<T>::fixed>();
    else
      return "a type with a serializer of its own";
  }
};

template <class C, class Traits, class A>
struct kind<std::basic_string<C, Traits, A>> {
  static std::string words() { return "string<" + words_of<C>() + ">"; }
};
template <class T, class A>
struct kind<std::vector<T, A>> {
  static std::string words() { return "vector<" + words_of<T>() + ">"; }
};
template <class T, class C, class A>
struct kind<std::set<T, C, A>> {
  static std::string words() { return "set<" + words_of<T>() + ">"; }
};
template <class T, class H, class E, class A>
struct kind<std::unordered_set<T, H, E, A>> {
  static std::string words() { return "set<" + words_of<T>() + ">"; }
};
template <class K, class V, class C, class A>
struct kind<std::map<K, V, C, A>> {
  static std::string words() { return "map<" + kinds_of<K, V>() + ">"; }
};
template <class K, class V, class H, class E, class A>
struct kind<std::unordered_map<K, V, H, E, A>> {
  static std::string words() { return "map<" + kinds_of<K, V>() + ">"; }
};
template <class T, std::size_t N>
struct kind<std::array<T, N>> {
  static std::string words() { return "array<" + words_of<T>() + ", " + std::to_string(N) + ">"; }
};
template <class A, class B>
struct kind<std::pair<A, B>> {
  static std::string words() { return "(" + kinds_of<A, B>() + ")"; }
};
template <class First, class... Rest>
struct kind<std::tuple<First, Rest...>> {
  static std::string words() { return "(" + kinds_of<First, Rest...>() + ")"; }
};
template <class T>
struct kind<std::optional<T>> {
  static std::string words() { return "optional<" + words_of<T>() + ">"; }
};
template <class First, class... Rest>
struct kind<std::variant<First, Rest...>> {
  static std::string words() { return "variant<" + kinds_of<First, Rest...>() + ">"; }
};

}  // namespace far::inline FARSIDE_BACKEND::detail
