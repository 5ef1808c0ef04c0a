// A file that all ranks write, and that gets its name when it is whole (farside/core/draft.hpp).
//
// Until then nobody sees it under its own name, and what was there before stays. Where the draft
// needs a name of its own, it is removed by each rank that ends before it is published, also by a
// signal that can be caught.
//
// The name - is standard output. Ranks write their parts of a file side by side, also then: of one
// without a name, among temporary files, which rank 0 copies to standard output when it is whole.
#pragma once

#include <farside/core/draft.hpp>

#include <string>

namespace programs {

/// Removes a file, unless told that it is wanted: at the end of its scope, and also when a signal
/// that can be caught ends the process. Eight at a time in a process are looked after that well.
class doomed_file {
 public:
  doomed_file() = default;
  doomed_file(const doomed_file&) = delete;
  doomed_file& operator=(const doomed_file&) = delete;
  ~doomed_file();
  void doom(std::string path);
  void spare();

 private:
  std::string path_;
};

/// Whether a file of that name is standard output.
inline bool is_standard_output(const std::string& path) { return path == "-"; }

class draft {
 public:
  /// Collective. Returns why it cannot be, on all ranks alike, or nothing. A link is followed.
  std::string create(const std::string& path);
  /// This rank's.
  int descriptor() const { return file_.descriptor(); }
  /// Collective. Returns why it could not get its name, or be copied, on all ranks alike, or
  /// nothing.
  std::string publish();

 private:
  std::string copy_to_standard_output() const;

  bool standard_output_ = false;
  far::draft file_{far::world()};
  doomed_file doomed_;
};

}  // namespace programs
