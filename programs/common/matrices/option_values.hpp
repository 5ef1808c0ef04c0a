// Values of options.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/sizes.hpp>
#include <toolkit/option_reader.hpp>

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace matrices {

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  throw toolkit::wrong_option(far::text(parts...));
}

inline std::uint64_t whole(toolkit::option_reader& in, std::uint64_t least = 0,
                           std::uint64_t most = std::uint64_t{1} << 62) {
  std::string text = in.value("a number");
  auto value = far::parse_number(text);
  if (!value || *value < least || *value > most)
    refuse(in.name(), " ", text, ": that is no whole number from ", least, " to ", most);
  return *value;
}

inline double real(toolkit::option_reader& in, double least, double most) {
  std::string text = in.value("a number");
  double value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || !(value >= least) ||
      !(value <= most))
    refuse(in.name(), " ", text, ": that is no number from ", least, " to ", most);
  return value;
}

template <class T>
T one_of(toolkit::option_reader& in, const std::vector<std::pair<std::string, T>>& known) {
  std::string text = in.value("a word"), names;
  for (const auto& [name, value] : known) {
    if (name == text) return value;
    names += (names.empty() ? "" : ", ") + name;
  }
  refuse(in.name(), " ", text, ": it is one of ", names);
}

/// Two or three numbers from 1 to `most`, such as 2x3.
inline std::vector<std::size_t> extents(toolkit::option_reader& in, std::size_t least_count,
                                        std::size_t most_count, std::size_t most,
                                        const std::string& what) {
  const std::string text = in.value(what);
  std::vector<std::size_t> result;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    std::size_t n = 0;
    auto [behind, failed] = std::from_chars(at, end, n);
    if (failed != std::errc{} || n - 1 >= most) break;
    result.push_back(n);
    if (behind == end && result.size() >= least_count && result.size() <= most_count) return result;
    if (behind == end || *behind != 'x') break;
    at = behind + 1;
  }
  refuse(in.name(), " ", text, ": that is no ", what);
}

}  // namespace matrices
