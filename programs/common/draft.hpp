// A file that all ranks write, and that gets its name when it is whole.
//
//   create    unnamed --------------------------------------------- publish --> has its name
//        \    (O_TMPFILE: rank 0 makes it, others open it by /proc)        /
//         \-> named .farside-*.part, in the same folder ------------------/
//             (where the file system, or ranks on several machines, do not allow the other)
//
// Until then nobody sees it under its own name, and what was there before stays. An unnamed one is
// gone with the last rank that has it open, whoever is killed, and how. A named one is removed by
// each rank that ends before it is published, also by a signal that can be caught.
#pragma once

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

class draft {
 public:
  draft() = default;
  draft(const draft&) = delete;
  draft& operator=(const draft&) = delete;
  ~draft();

  /// Collective. Returns why it cannot be, on all ranks alike, or nothing. A link is followed.
  std::string create(const std::string& path);
  /// This rank's.
  int descriptor() const { return file_; }
  /// Collective. Returns why it could not get its name, on all ranks alike, or nothing.
  std::string publish();

 private:
  int make_unnamed() const;
  bool open_unnamed();
  std::string open_named(int how);

  std::string path_;       ///< its own name
  std::string temporary_;  ///< another one, in the same folder
  bool named_ = false;
  int file_ = -1;
  doomed_file doomed_;
};

}  // namespace programs
