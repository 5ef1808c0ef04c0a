// Settings from the environment, read once when the runtime starts. A value that cannot be
// understood is an error: a typing mistake must not silently mean the default.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/sizes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace far::inline FARSIDE_BACKEND::detail {

inline std::optional<std::string> setting(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

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

}  // namespace far::inline FARSIDE_BACKEND::detail
