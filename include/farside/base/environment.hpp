// Settings from the environment, read once when the runtime starts. A value that cannot be
// understood is an error: a typing mistake must not silently mean the default.
#pragma once

#include <farside/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

inline std::optional<std::string> setting(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

}  // namespace detail

/// Parses "4096", "64K", "1.5G": bytes with an optional binary suffix. Local; no communication.
inline std::optional<std::size_t> parse_size(std::string_view text) {
  std::string number(text);
  double scale = 1;
  if (!number.empty() && (number.back() == 'B' || number.back() == 'b')) number.pop_back();
  if (!number.empty()) {
    constexpr std::string_view suffixes = "KMGT";
    char last = static_cast<char>(number.back() & ~0x20);
    if (auto at = suffixes.find(last); at != std::string_view::npos) {
      for (std::size_t i = 0; i <= at; ++i) scale *= 1024;
      number.pop_back();
    }
  }
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos) return {};
  char* end = nullptr;
  double value = std::strtod(number.c_str(), &end);
  if (*end != '\0' || value * scale >= 9e18) return {};
  return static_cast<std::size_t>(value * scale);
}

namespace detail {

inline std::optional<std::size_t> size_setting(const char* name) {
  auto value = setting(name);
  if (!value) return {};
  if (auto size = parse_size(*value); size && *size > 0) return size;
  raise("environment variable ", name, "='", *value,
        "' is not a size. Give bytes with an optional suffix, as in ", name, "=512M or ", name,
        "=4G.");
}

inline std::optional<long> integer_setting(const char* name, long least, long most) {
  auto value = setting(name);
  if (!value) return {};
  char* end = nullptr;
  long number = std::strtol(value->c_str(), &end, 10);
  if (*end != '\0' || number < least || number > most)
    raise("environment variable ", name, "='", *value, "' is not a whole number from ", least,
          " to ", most, ". Correct it or unset it.");
  return number;
}

inline bool switch_setting(const char* name, bool otherwise) {
  auto value = setting(name);
  if (!value) return otherwise;
  if (*value == "1" || *value == "yes" || *value == "on" || *value == "true") return true;
  if (*value == "0" || *value == "no" || *value == "off" || *value == "false") return false;
  raise("environment variable ", name, "='", *value, "' is neither 0 nor 1. Set it to ", name,
        "=1 or ", name, "=0.");
}

}  // namespace detail

/// 12345678 -> "11.8 MiB". Local; no communication.
inline std::string human_size(double bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 4) bytes /= 1024, ++unit;
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
  return buffer;
}

namespace detail {

/// Value of a line "Key:   123 kB" of /proc/meminfo, in bytes; 0 if it is not there.
inline std::size_t meminfo(std::string_view key) {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  std::size_t value;
  while (in >> name >> value) {
    std::getline(in, unit);
    if (name.substr(0, name.size() - 1) == key) return value * 1024;
  }
  return 0;
}

inline std::size_t number_in_file(const char* path) {
  std::ifstream in(path);
  std::size_t value;
  return in >> value ? value : std::numeric_limits<std::size_t>::max();  // "max" is no limit
}

/// Memory this process may come to use: what the machine has, or its control group allows.
inline std::size_t memory_limit() {
  std::size_t limit = meminfo("MemTotal");
  limit = std::min(limit, number_in_file("/sys/fs/cgroup/memory.max"));
  return std::min(limit, number_in_file("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
}

/// Memory that is free at this moment.
inline std::size_t memory_available() {
  std::size_t used = number_in_file("/sys/fs/cgroup/memory.current");
  std::size_t most = number_in_file("/sys/fs/cgroup/memory.max");
  std::size_t in_group = most != std::numeric_limits<std::size_t>::max() && used < most
                             ? most - used
                             : std::numeric_limits<std::size_t>::max();
  return std::min(meminfo("MemAvailable"), in_group);
}

}  // namespace detail
}  // namespace far::inline FARSIDE_BACKEND
