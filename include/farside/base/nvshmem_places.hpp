// Where the host library of NVSHMEM is looked for, in this order:
//
//   1. FARSIDE_NVSHMEM, the library or its folder; if it is set, nowhere else
//   2. what farside::gpu was configured with
//   3. NVSHMEM_HOME/lib
//   4. the linker's places
//   5. the Python package nvidia/nvshmem that `python3` finds
#pragma once

#include <farside/base/environment.hpp>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

/// The folder of the libraries in the package of `python3`; empty if there is none.
inline std::string nvshmem_of_python() {
  const char* ask =
      "python3 -c 'import nvidia.nvshmem as m; print(list(m.__path__)[0])' 2>/dev/null";
  std::FILE* answer = popen(ask, "r");
  if (answer == nullptr) return {};
  char line[4096] = {};
  bool any = std::fgets(line, sizeof line, answer) != nullptr;
  pclose(answer);
  std::string place = any ? line : "";
  while (!place.empty() && place.back() == '\n') place.pop_back();
  return place.empty() ? place : place + "/lib";
}

/// Names for dlopen.
inline std::vector<std::string> nvshmem_places() {
  std::vector<std::string> result;
  auto add = [&](const std::string& place) {
    bool folder = std::filesystem::is_directory(place);
    result.push_back(folder ? place + "/libnvshmem_host.so.3" : place);
  };
  if (auto place = setting("FARSIDE_NVSHMEM")) {
    add(*place);
    return result;
  }
#if defined(FARSIDE_NVSHMEM_LIBRARY)
  add(FARSIDE_NVSHMEM_LIBRARY);
#endif
  if (auto home = setting("NVSHMEM_HOME")) add(*home + "/lib");
  result.push_back("libnvshmem_host.so.3");
  if (auto place = nvshmem_of_python(); !place.empty()) add(place);
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::detail
