// Numbers of bytes and other whole numbers as people write them: in settings, options and messages.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace far::inline FARSIDE_BACKEND {

/// A whole number below 2^64, of digits alone; nothing if `text` is anything else. Local; no communication.
inline std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Bytes, with a binary suffix or without: "4096", "64K", "64KB", "1.5G". Nothing if `text` is anything else, or more
/// than 2^63. Local; no communication.
inline std::optional<std::size_t> parse_size(std::string_view text) {
  if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.remove_suffix(1);
  unsigned shift = 0;
  if (!text.empty()) {
    constexpr std::string_view suffixes = "KMGT";
    auto at = suffixes.find(static_cast<char>(text.back() & ~0x20));
    if (at != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(at) + 1);
      text.remove_suffix(1);
    }
  }
  if (auto whole = parse_number(text)) {
    if (*whole >> (63 - shift) != 0) return std::nullopt;
    return static_cast<std::size_t>(*whole << shift);
  }
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos)
    return std::nullopt;
  std::string number(text);
  char* end = nullptr;
  double bytes = std::strtod(number.c_str(), &end) * static_cast<double>(std::uint64_t{1} << shift);
  if (*end != '\0' || bytes >= 9e18) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

/// 12345678 -> "11.8 MiB". Local; no communication.
inline std::string human_size(double bytes) {
  constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 6) bytes /= 1024, ++unit;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return buffer;
}

}  // namespace far::inline FARSIDE_BACKEND
