// far::print: output of all ranks, in order; far::print_here: of one rank.
#pragma once

#include <farside/core/collectives.hpp>
#include <farside/core/detail/standard_streams.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>

namespace far::inline FARSIDE_BACKEND {
namespace detail {

/// Writes by one call of the system, if that takes all of it. A pipe does so up to PIPE_BUF (4
/// KiB), without mixing in what others write.
inline void write_whole(int to, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    ssize_t n = ::write(to, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) output_lost_by = errno;  // the program's exit says so
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace detail

/// Collective over the world: rank 0 prints every rank's text to stdout, in rank order. The
/// arguments are joined as std::ostream prints them; a rank without arguments adds nothing. A rank
/// that has something to say on its own calls print_here.
template <class... Parts>
void print(const Parts&... parts) {
  std::ostringstream line;
  static_cast<void>((line << ... << parts));
  auto texts = detail::collectively<"print">(
      world(), 0, 1, detail::job::no_rank, {}, [&](detail::context& c, detail::team_members& t) {
        return detail::unpack_all<std::string>(
            c, t, "print",
            detail::gather_blobs(c, t, "print", detail::to_blob(line.str()), t.me == 0));
      });
  for (const auto& text : texts) std::fwrite(text.data(), 1, text.size(), stdout);
  if (!texts.empty()) std::fflush(stdout);
}

/// This rank alone prints a line to stdout: no other has to call it, and none waits. The arguments
/// are joined as std::ostream prints them, with "rank R: " before them and the end of the line
/// behind. A line is written at once: lines of several ranks do not mix, and their order is open.
/// Local; no communication.
template <class... Parts>
void print_here(const Parts&... parts) {
  std::ostringstream line;
  line << "rank " << rank() << ": ";
  static_cast<void>((line << ... << parts));
  std::string text = std::move(line).str();
  if (text.back() != '\n') text += '\n';
  std::fflush(stdout);  // what this rank has printed before comes before
  detail::write_whole(STDOUT_FILENO, text);
}

}  // namespace far::inline FARSIDE_BACKEND
