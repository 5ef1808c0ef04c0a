#include "support.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace far::app {

std::string self_path() {
  char path[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0) throw error(failure, "cannot read /proc/self/exe: /proc has to be mounted");
  return {path, static_cast<std::size_t>(n)};
}

std::string self_directory() {
  std::string path = self_path();
  return path.substr(0, path.rfind('/'));
}

static bool is_program(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string find_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* variable = getenv("PATH");
  std::string path = variable ? variable : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t begin = 0; begin <= path.size();) {
    std::size_t end = std::min(path.find(':', begin), path.size());
    std::string folder = path.substr(begin, end - begin);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (is_program(candidate)) return candidate;
    begin = end + 1;
  }
  return "";
}

std::string find_companion(const std::string& name) {
  std::string here = self_directory();
  for (const std::string& folder : {here, here + "/../libexec/farside"})
    if (std::string path = folder + "/" + name;
        name.ends_with(".so") ? access(path.c_str(), R_OK) == 0 : is_program(path))
      return path;  // Debian's CMake installs libraries without the x bit
  return "";
}

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

captured capture(const arguments& command, double seconds) {
  captured result;
  std::string program = find_in_path(command.at(0));
  int ends[2];
  if (program.empty() || pipe2(ends, O_CLOEXEC) != 0) return result;
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    dup2(null, 0);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(program.c_str(), argv.data());
    _exit(not_found);
  }
  close(ends[1]);
  double deadline = now() + seconds;
  bool complete = false;
  while (child > 0 && !complete && now() < deadline) {
    pollfd readable{ends[0], POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>((deadline - now()) * 1000) + 1) <= 0) continue;
    char buffer[4096];
    ssize_t n = read(ends[0], buffer, sizeof buffer);
    if (n > 0) result.text.append(buffer, static_cast<std::size_t>(n));
    complete = n == 0;
  }
  close(ends[0]);
  if (child < 0) return result;
  if (!complete) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  result.ended = complete;
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  return result;
}

std::string trimmed(std::string_view text) {
  constexpr const char* blank = " \t\r\n";
  std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(blank) - begin + 1));
}

std::string first_line_of(const arguments& command) {
  captured output = capture(command);
  if (!output.ended || output.status != 0) return "";
  return trimmed(output.text.substr(0, output.text.find('\n')));
}

std::string first_line_of_file(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return trimmed(line);
}

temporary_file::temporary_file(const std::string& name) {
  const char* folder = getenv("TMPDIR");
  path = std::string(folder && *folder ? folder : "/tmp") + "/" + name + ".XXXXXX";
  int fd = mkstemp(path.data());
  if (fd < 0)
    throw error(failure, "cannot make a temporary file in " + path.substr(0, path.rfind('/')));
  close(fd);
}

temporary_file::~temporary_file() { unlink(path.c_str()); }

std::string human_time(double seconds) {
  char text[48];
  if (seconds < 120)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else
    std::snprintf(text, sizeof text, "%.0f min %02d s",
                  static_cast<double>(static_cast<int>(seconds) / 60),
                  static_cast<int>(seconds) % 60);
  return text;
}

std::string quoted(const arguments& command) {
  std::string result;
  for (const std::string& word : command) {
    if (!result.empty()) result += ' ';
    constexpr const char* plain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%^";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
      result += word;
      continue;
    }
    result += '\'';
    for (char c : word) result += c == '\'' ? "'\\''" : std::string(1, c);
    result += '\'';
  }
  return result;
}

std::string counted(std::uint64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

bool fix_addresses() {
  constexpr unsigned long ask = 0xffffffff;
  int now = personality(ask);
  return now >= 0 && personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0;
}

}  // namespace far::app
