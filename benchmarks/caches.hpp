// Sizes of this machine's caches, as the kernel tells them.
#pragma once

#include <farside/base/sizes.hpp>

#include <fstream>
#include <string>

namespace far::bench {

struct caches {
  std::size_t first = std::size_t{32} << 10;  ///< the data cache of a core
  std::size_t last = std::size_t{32} << 20;   ///< the largest there is
};

/// A guess where the kernel says nothing, as in some virtual machines.
inline caches caches_of_this_machine() {
  caches result;
  int last_level = 0;
  for (int i = 0; i < 16; ++i) {
    std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    int level = 0;
    std::string type, size;
    std::ifstream(folder + "level") >> level;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> size;
    auto bytes = parse_size(size);
    if (level == 0 || type == "Instruction" || !bytes || *bytes == 0) continue;
    if (level == 1) result.first = *bytes;
    if (level > last_level) last_level = level, result.last = *bytes;
  }
  return result;
}

}  // namespace far::bench
