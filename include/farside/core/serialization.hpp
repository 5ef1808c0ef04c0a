// How objects become bytes and back.
//
//   trivially copyable types          their own bytes, in place, no copy added
//   pairs, tuples, arrays of such     fixed length, in place (std::pair is not trivially copyable)
//   strings, containers, variants...  variable length
//   your own types                    specialise far::serializer, one of two ways:
//
//   template <> struct far::serializer<date> {          // fixed length: stored in place
//     using fixed = std::array<int, 3>;                 // any fixed-length type
//     static fixed pack(const date& d);
//     static date unpack(const fixed& f);
//   };
//   template <> struct far::serializer<record> {        // variable length
//     static void save(far::writer& out, const record& r) { out << r.name << r.values; }
//     static record load(far::reader& in) { record r; in >> r.name >> r.values; return r; }
//   };
//
// Types with cereal's functions work unchanged after #include <farside/core/cereal.hpp>.
//
// All of it is local: no communication.
#pragma once

#include <farside/base/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace far::inline FARSIDE_BACKEND {

class writer;
class reader;

/// Specialised for the types that are not trivially copyable.
template <class T>
struct serializer;

namespace detail {

template <class T>
inline constexpr bool is_view = std::is_pointer_v<T>;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;
template <class T, std::size_t N>
inline constexpr bool is_view<std::array<T, N>> = is_view<T>;
template <class T>
inline constexpr bool is_view<std::optional<T>> = is_view<T>;
template <class... T>
inline constexpr bool is_view<std::variant<T...>> = (is_view<T> || ...);

/// Has the bytes of T a meaning on another rank? A pointer or view has not.
template <class T>
concept plain = std::is_trivially_copyable_v<T> && !is_view<T>;

template <class T>
concept packs_to_fixed = requires(const T& value, const typename serializer<T>::fixed& form) {
  { serializer<T>::pack(value) } -> std::same_as<typename serializer<T>::fixed>;
  { serializer<T>::unpack(form) } -> std::same_as<T>;
};

template <class T>
concept saves_and_loads = requires(const T& value, writer& out, reader& in) {
  serializer<T>::save(out, value);
  { serializer<T>::load(in) } -> std::same_as<T>;
};

/// The trivially copyable form of a fixed-length type.
template <class T>
struct fixed_form {
  static constexpr bool exists = false;
};

template <plain T>
struct fixed_form<T> {
  static constexpr bool exists = true;
  using type = T;
  static const T& pack(const T& value) { return value; }
  static const T& unpack(const T& form) { return form; }
};

template <class T>
  requires(!plain<T> && packs_to_fixed<T> && fixed_form<typename serializer<T>::fixed>::exists)
struct fixed_form<T> {
  static constexpr bool exists = true;
  using inner = fixed_form<typename serializer<T>::fixed>;
  using type = typename inner::type;
  static type pack(const T& value) { return inner::pack(serializer<T>::pack(value)); }
  static T unpack(const type& form) { return serializer<T>::unpack(inner::unpack(form)); }
};

template <class... T>
struct packed_tuple {};
template <class First, class... Rest>
struct packed_tuple<First, Rest...> {
  [[no_unique_address]] First first;
  [[no_unique_address]] packed_tuple<Rest...> rest;
};

template <std::size_t I, class Packed>
constexpr auto& element(Packed& packed) {
  if constexpr (I == 0)
    return packed.first;
  else
    return element<I - 1>(packed.rest);
}

template <class Tuple, class... T>
struct fixed_tuple_form {
  static constexpr bool exists = true;
  using type = packed_tuple<typename fixed_form<T>::type...>;
  static type pack(const Tuple& value) {
    type result;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((element<I>(result) = fixed_form<T>::pack(std::get<I>(value))), ...);
    }(std::index_sequence_for<T...>());
    return result;
  }
  static Tuple unpack(const type& form) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Tuple(fixed_form<T>::unpack(element<I>(form))...);
    }(std::index_sequence_for<T...>());
  }
};

template <class A, class B>
  requires(!plain<std::pair<A, B>> && fixed_form<A>::exists && fixed_form<B>::exists)
struct fixed_form<std::pair<A, B>> : fixed_tuple_form<std::pair<A, B>, A, B> {};

template <class... T>
  requires(!plain<std::tuple<T...>> && (fixed_form<T>::exists && ...))
struct fixed_form<std::tuple<T...>> : fixed_tuple_form<std::tuple<T...>, T...> {};

template <class T, std::size_t N>
  requires(!plain<std::array<T, N>> && fixed_form<T>::exists)
struct fixed_form<std::array<T, N>> {
  static constexpr bool exists = true;
  struct type {
    typename fixed_form<T>::type items[N];
  };
  static type pack(const std::array<T, N>& value) {
    type result;
    for (std::size_t i = 0; i < N; ++i) result.items[i] = fixed_form<T>::pack(value[i]);
    return result;
  }
  static std::array<T, N> unpack(const type& form) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<T, N>{fixed_form<T>::unpack(form.items[I])...};
    }(std::make_index_sequence<N>());
  }
};

}  // namespace detail

/// Stored in place, in a known number of bytes.
template <class T>
concept fixed_length = detail::fixed_form<T>::exists;

template <class T>
concept serializable = fixed_length<T> || detail::saves_and_loads<T>;

namespace detail {
template <class T>
constexpr void require_serializable() {
  static_assert(!is_view<T>,
                "a pointer, std::string_view or std::span means nothing on another rank: send a "
                "far::ptr, a std::string or a std::vector instead");
  static_assert(serializable<T>,
                "this type is neither trivially copyable nor known to farside: specialise "
                "far::serializer<T> (the beginning of <farside/core/serialization.hpp> shows how), "
                "or include "
                "<farside/core/cereal.hpp> if it has cereal's functions");
}
}  // namespace detail

/// Bytes being written.
class writer {
 public:
  /// Appends `n` bytes as they are.
  void bytes(const void* from, std::size_t n) {
    auto* begin = static_cast<const std::byte*>(from);
    buffer_.insert(buffer_.end(), begin, begin + n);
  }
  template <class T>
  writer& operator<<(const T& value) {
    detail::require_serializable<T>();
    if constexpr (fixed_length<T>) {
      auto&& form = detail::fixed_form<T>::pack(value);
      bytes(&form, sizeof form);
    } else {
      serializer<T>::save(*this, value);
    }
    return *this;
  }
  /// How many bytes have been written.
  std::size_t size() const { return buffer_.size(); }
  /// All bytes; the writer is empty then.
  std::vector<std::byte> take() { return std::move(buffer_); }

 private:
  std::vector<std::byte> buffer_;
};

/// Bytes being read. Reading past the end throws.
class reader {
 public:
  /// Reads these bytes, which must live as long as it.
  explicit reader(std::span<const std::byte> from) : at_(from.data()), end_(at_ + from.size()) {}

  /// The next `n` bytes, in place; throws if there are fewer.
  const std::byte* bytes(std::size_t n) {
    if (n > left())
      detail::raise("serialized data ends too early: ", n, " bytes wanted, ", left(),
                    " left. Do save and load of that type agree?");
    return std::exchange(at_, at_ + n);
  }
  /// How many bytes have not been read.
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  /// The next object.
  template <class T>
  T read() {
    detail::require_serializable<T>();
    if constexpr (fixed_length<T>) {
      using form = typename detail::fixed_form<T>::type;
      alignas(form) std::byte buffer[sizeof(form)];
      std::memcpy(buffer, bytes(sizeof(form)), sizeof(form));
      return detail::fixed_form<T>::unpack(*reinterpret_cast<const form*>(buffer));
    } else {
      return serializer<T>::load(*this);
    }
  }
  template <class T>
  reader& operator>>(T& value) {
    value = read<T>();
    return *this;
  }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

/// The bytes of an object.
template <class T>
std::vector<std::byte> to_bytes(const T& value) {
  writer out;
  out << value;
  return out.take();
}

/// The object of such bytes; throws if they end too early.
template <class T>
T from_bytes(std::span<const std::byte> bytes) {
  reader in(bytes);
  return in.read<T>();
}

namespace detail {

/// Containers that are read back by inserting at their end.
template <class Container, class Item>
struct container_serializer {
  static void save(writer& out, const Container& c) {
    out << static_cast<std::uint64_t>(c.size());
    if constexpr (plain<Item> && requires { c.data(); }) {
      out.bytes(c.data(), c.size() * sizeof(Item));
    } else {
      for (const auto& item : c) out << static_cast<const Item&>(item);
    }
  }
  static Container load(reader& in) {
    auto n = in.read<std::uint64_t>();
    Container c;
    if constexpr (plain<Item> && std::is_default_constructible_v<Item> && requires { c.data(); }) {
      if (n > in.left() / sizeof(Item)) in.bytes(in.left() + 1);  // throws: a broken length
      c.resize(n);
      if (n != 0) std::memcpy(c.data(), in.bytes(n * sizeof(Item)), n * sizeof(Item));
    } else {
      for (std::uint64_t i = 0; i < n; ++i) c.insert(c.end(), in.read<Item>());
    }
    return c;
  }
};

template <class Map, class K, class V>
struct map_serializer {
  static void save(writer& out, const Map& m) {
    out << static_cast<std::uint64_t>(m.size());
    for (const auto& [key, value] : m) out << key << value;
  }
  static Map load(reader& in) {
    Map m;
    for (auto n = in.read<std::uint64_t>(); n != 0; --n) {
      auto key = in.read<K>();  // in this order: arguments of a call have none
      m.emplace_hint(m.end(), std::move(key), in.read<V>());
    }
    return m;
  }
};

}  // namespace detail

template <class C, class Traits, class A>
struct serializer<std::basic_string<C, Traits, A>>
    : detail::container_serializer<std::basic_string<C, Traits, A>, C> {};
template <class T, class A>
  requires(!std::same_as<T, bool>)
struct serializer<std::vector<T, A>> : detail::container_serializer<std::vector<T, A>, T> {};
template <class A>
struct serializer<std::vector<bool, A>> {
  static void save(writer& out, const std::vector<bool, A>& v) {
    out << static_cast<std::uint64_t>(v.size());
    for (bool item : v) out << item;
  }
  static std::vector<bool, A> load(reader& in) {
    auto n = in.read<std::uint64_t>();
    if (n > in.left()) in.bytes(in.left() + 1);  // throws: a broken length
    std::vector<bool, A> v(n);
    for (auto item : v) item = in.read<bool>();
    return v;
  }
};
template <class K, class V, class C, class A>
struct serializer<std::map<K, V, C, A>> : detail::map_serializer<std::map<K, V, C, A>, K, V> {};
template <class K, class V, class H, class E, class A>
struct serializer<std::unordered_map<K, V, H, E, A>>
    : detail::map_serializer<std::unordered_map<K, V, H, E, A>, K, V> {};
template <class T, class C, class A>
struct serializer<std::set<T, C, A>> : detail::container_serializer<std::set<T, C, A>, T> {};
template <class T, class H, class E, class A>
struct serializer<std::unordered_set<T, H, E, A>>
    : detail::container_serializer<std::unordered_set<T, H, E, A>, T> {};

template <class A, class B>
struct serializer<std::pair<A, B>> {
  static void save(writer& out, const std::pair<A, B>& p) { out << p.first << p.second; }
  static std::pair<A, B> load(reader& in) {
    auto first = in.read<A>();  // in this order: arguments of a call have none
    return {std::move(first), in.read<B>()};
  }
};

template <class... T>
struct serializer<std::tuple<T...>> {
  static void save(writer& out, const std::tuple<T...>& t) {
    std::apply([&](const T&... item) { (out << ... << item); }, t);
  }
  static std::tuple<T...> load(reader& in) { return std::tuple<T...>{in.read<T>()...}; }
};

template <class T, std::size_t N>
struct serializer<std::array<T, N>> {
  static void save(writer& out, const std::array<T, N>& a) {
    for (const auto& item : a) out << item;
  }
  static std::array<T, N> load(reader& in) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<T, N>{((void)I, in.read<T>())...};
    }(std::make_index_sequence<N>());
  }
};

template <class T>
struct serializer<std::optional<T>> {
  static void save(writer& out, const std::optional<T>& o) {
    out << o.has_value();
    if (o) out << *o;
  }
  static std::optional<T> load(reader& in) {
    if (!in.read<bool>()) return std::nullopt;
    return in.read<T>();
  }
};

template <class... T>
struct serializer<std::variant<T...>> {
  using variant = std::variant<T...>;
  static void save(writer& out, const variant& v) {
    if (v.valueless_by_exception())
      detail::raise("a std::variant that holds nothing cannot be serialized.");
    out << static_cast<std::uint32_t>(v.index());
    std::visit([&](const auto& item) { out << item; }, v);
  }
  static variant load(reader& in) {
    auto index = in.read<std::uint32_t>();
    return load_alternative<0>(in, index);
  }

 private:
  template <std::size_t I>
  static variant load_alternative(reader& in, std::uint32_t index) {
    if constexpr (I < sizeof...(T)) {
      if (I == index)
        return variant(std::in_place_index<I>, in.read<std::variant_alternative_t<I, variant>>());
      return load_alternative<I + 1>(in, index);
    } else {
      detail::raise("serialized std::variant names alternative ", index, " of ", sizeof...(T), ".");
    }
  }
};

}  // namespace far::inline FARSIDE_BACKEND
