// Checked builds: far memory that a rank allocated in its own segment and nobody freed, told at the
// end of the runtime, with the places in the program that allocated it.
#pragma once

#include <farside/base/backend_choice.hpp>

#include <cstddef>
#include <cstdio>
#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace far::inline FARSIDE_BACKEND::detail {

/// Where memory was asked for: an argument that callers leave out. Empty in other builds.
struct allocation_site {
#if FARSIDE_CHECKED
  std::source_location where;
  const char* function = nullptr;  ///< instead of it, where that cannot be known
  static consteval allocation_site current(
      std::source_location at = std::source_location::current()) {
    return {at};
  }
#else
  static constexpr allocation_site current() { return {}; }
#endif
  static allocation_site of([[maybe_unused]] const char* name) {
    allocation_site result;
#if FARSIDE_CHECKED
    result.function = name;
#endif
    return result;
  }
};

/// The blocks of one rank's own heap, in checked builds; nothing in others. The context's mutex
/// guards it.
class allocation_sites {
 public:
#if FARSIDE_CHECKED
  void add(std::size_t offset, std::size_t bytes, const allocation_site& at) {
    blocks_[offset] = {bytes, at};
  }
  void remove(std::size_t offset) { blocks_.erase(offset); }

  /// What was never freed, without what the library keeps for itself; empty if nothing was.
  std::string report() const {
    constexpr std::string_view here = std::source_location::current().file_name();
    constexpr std::string_view library =
        here.substr(0, here.size() - sizeof("core/detail/leaks.hpp") + 1);
    std::map<std::string, std::pair<std::size_t, std::size_t>> by_place;
    std::size_t blocks = 0, bytes = 0;
    for (const auto& [offset, b] : blocks_) {
      std::string_view file = b.at.where.file_name();
      if (b.at.function == nullptr && file.starts_with(library)) continue;
      std::string place = b.at.function != nullptr
                              ? b.at.function
                              : std::string(file) + ":" + std::to_string(b.at.where.line());
      auto& [n, sum] = by_place[place];
      ++n, ++blocks;
      sum += b.bytes, bytes += b.bytes;
    }
    if (blocks == 0) return "";
    std::string result = counted(blocks, bytes) + " of far memory never freed:\n";
    std::size_t left = 10;
    for (const auto& [place, sizes] : by_place) {
      if (left-- == 0) return result + "  and at further places\n";
      result += "  " + counted(sizes.first, sizes.second) + " allocated by " + place + "\n";
    }
    return result;
  }

 private:
  static std::string counted(std::size_t blocks, std::size_t bytes) {
    return std::to_string(blocks) + (blocks == 1 ? " block, " : " blocks, ") +
           std::to_string(bytes) + " bytes,";
  }
  struct block {
    std::size_t bytes;
    allocation_site at;
  };
  std::map<std::size_t, block> blocks_;
#else
  void add(std::size_t, std::size_t, const allocation_site&) {}
  void remove(std::size_t) {}
#endif
};

}  // namespace far::inline FARSIDE_BACKEND::detail
