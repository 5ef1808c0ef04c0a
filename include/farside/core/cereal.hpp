// Types that have cereal's functions (serialize, or save and load, as members or not, private
// ones through cereal::access too) work unchanged once this header is included.
#pragma once

#include <farside/core/serialization.hpp>

#if !__has_include(<cereal/cereal.hpp>)
#error \
    "farside: <farside/core/cereal.hpp> needs cereal's headers (Debian: apt-get install libcereal-dev)."
#endif
#include <cereal/archives/binary.hpp>
#include <cereal/cereal.hpp>

#include <istream>
#include <streambuf>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// Streams over farside's bytes, so that nothing is copied on the way.
struct write_buffer : std::streambuf {
  writer& out;
  explicit write_buffer(writer& to) : out(to) {}
  std::streamsize xsputn(const char* from, std::streamsize n) override {
    out.bytes(from, static_cast<std::size_t>(n));
    return n;
  }
  int_type overflow(int_type c) override {
    char byte = traits_type::to_char_type(c);
    out.bytes(&byte, 1);
    return c;
  }
};
struct read_buffer : std::streambuf {
  reader& in;
  explicit read_buffer(reader& from) : in(from) {}
  std::streamsize xsgetn(char* to, std::streamsize n) override {
    if (n != 0) std::memcpy(to, in.bytes(static_cast<std::size_t>(n)), static_cast<std::size_t>(n));
    return n;
  }
};

template <class T>
concept has_cereal =
    cereal::traits::is_output_serializable<T, cereal::BinaryOutputArchive>::value &&
    cereal::traits::is_input_serializable<T, cereal::BinaryInputArchive>::value;

}  // namespace detail

template <class T>
  requires(!detail::plain<T> && !detail::is_view<T> && detail::has_cereal<T>)
struct serializer<T> {
  static void save(writer& out, const T& value) {
    detail::write_buffer buffer(out);
    std::ostream stream(&buffer);
    cereal::BinaryOutputArchive archive(stream);
    archive(value);
  }
  static T load(reader& in) {
    detail::read_buffer buffer(in);
    std::istream stream(&buffer);
    cereal::BinaryInputArchive archive(stream);
    T value;
    archive(value);
    return value;
  }
};

}  // namespace far::inline FARSIDE_BACKEND
