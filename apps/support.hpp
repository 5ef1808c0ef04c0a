// What the sub-commands share: errors with an exit status, other programs, texts.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "farside/base/sizes.hpp"
#include "toolkit/table.hpp"

#include <toolkit/words.hpp>

namespace far::app {

/// Exit statuses follow the shell and GNU timeout, so that scripts need no table of ours.
enum exit_status : int {
  success = 0,
  failure = 1,
  usage_error = 2,
  timed_out = 124,
  not_executable = 126,
  not_found = 127,
  signal_base = 128
};

/// Ends a sub-command: main() prints the text behind the sub-command's name.
struct error : std::runtime_error {
  error(int status, const std::string& text) : std::runtime_error(text), status(status) {}
  int status;
};

using arguments = std::vector<std::string>;
using far::human_size, far::parse_number, far::parse_size;
using toolkit::table;

/// In the nanoseconds of job_board::monotonic_ns().
inline constexpr std::uint64_t millisecond = 1'000'000, second = 1000 * millisecond;

/// The program's own file, and the folder it lies in.
std::string self_path();
std::string self_directory();

/// Searches PATH as a shell does; a name with a slash is taken as it is. Empty if there is none.
std::string find_in_path(const std::string& name);

/// Programs that come with farside: beside this one, or in ../libexec/farside. Empty if absent.
std::string find_companion(const std::string& name);

struct captured {
  bool ended = false;  ///< false: it could not be started, or ran longer than it may
  int status = -1;     ///< its exit status; -1 if a signal killed it
  std::string text;    ///< stdout and stderr together
};
/// Runs a command without a shell and with stdin closed, for `seconds` at most.
captured capture(const arguments& command, double seconds = 5);

/// First line of what a command prints, without white space around it; empty if it fails.
std::string first_line_of(const arguments& command);
std::string first_line_of_file(const std::string& path);
std::string trimmed(std::string_view text);

/// An empty file in TMPDIR that is gone when this object is.
struct temporary_file {
  explicit temporary_file(const std::string& name);
  ~temporary_file();
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  std::string path;
};

/// `3.2 s`, `2 min 5 s`.
std::string human_time(double seconds);

using toolkit::grouped;
using toolkit::nearest;

/// `a b 'c d'`: a command as one could type it.
std::string quoted(const arguments& command);

/// The next program that this process, or a child of it, executes has the same addresses in each
/// run. False if that is not allowed here: some containers forbid it.
bool fix_addresses();

/// Adds '1 rank' or '3 ranks'.
std::string counted(std::uint64_t n, const std::string& noun);

}  // namespace far::app
