// Files of a test: in a folder of its own, which is gone when the test is.
#pragma once

#include <farside/farside.hpp>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace scratch {

/// A folder that all ranks of the job share, and nobody else; gone at the end. It lies where rank 0
/// has temporary files: other hosts may have another place for them.
class scratch_folder {
 public:
  explicit scratch_folder(const char* name) {
    auto file = "farside_" + std::to_string(getpid()) + "_" + name;
    path_ = far::broadcast((std::filesystem::temp_directory_path() / file).string(), 0);
    if (far::rank() == 0) std::filesystem::create_directories(path_);
    far::barrier();
  }
  ~scratch_folder() {
    far::barrier();
    std::error_code ignored;
    if (far::rank() == 0) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }
  /// How many files there are.
  std::ptrdiff_t count() const {
    return std::distance(std::filesystem::directory_iterator(path_),
                         std::filesystem::directory_iterator());
  }

 private:
  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace scratch
