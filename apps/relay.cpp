#include "relay.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace far::app {

std::string cannot_write(int reason) {
  if (reason == EPIPE) return "nobody reads the output of the ranks any more";
  std::string why = std::strerror(reason);
  if (reason == EBADF) why += ", as it was closed when farside was started";
  return "cannot write the output of the ranks to standard output: " + why + "; some of it is lost";
}

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd writable{fd, POLLOUT, 0};
      poll(&writable, 1, -1);
      continue;
    }
    if (n < 0) return false;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

relay::relay(int from, int to, std::string prefix, bool shared)
    : from_(from), to_(to), prefix_(std::move(prefix)), shared_(shared) {
  fcntl(from_, F_SETFL, fcntl(from_, F_GETFL) | O_NONBLOCK);
}

void relay::move() {
  constexpr std::size_t longest_line = std::size_t{1} << 20;  // then it goes out in pieces
  char buffer[65536];
  // Bounded, so that one rank that never stops printing cannot hold the others up.
  for (int rounds = 0; from_ >= 0 && rounds < 16; ++rounds) {
    ssize_t n = read(from_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    if (n == 0) return finish();
    pending_.append(buffer, static_cast<std::size_t>(n));
    std::size_t end = pending_.rfind('\n');
    if (end != std::string::npos)
      emit(end + 1);
    else if (pending_.size() > longest_line)
      emit(pending_.size());
  }
}

void relay::finish() {
  if (from_ < 0) return;
  if (!pending_.empty()) {
    if (pending_.back() != '\n') pending_ += '\n';
    emit(pending_.size());
  }
  if (from_ >= 0) close(from_);
  from_ = -1;
}

void relay::emit(std::size_t end) {
  std::string lines;
  for (std::size_t begin = 0; begin < end;) {
    std::size_t stop = std::min(pending_.find('\n', begin), end - 1) + 1;
    lines += prefix_;
    lines.append(pending_, begin, stop - begin);
    begin = stop;
  }
  pending_.erase(0, end);
  if (shared_) flock(to_, LOCK_EX);
  bool read = write_all(to_, lines.data(), lines.size());
  int reason = errno;
  if (shared_) flock(to_, LOCK_UN);
  if (!read && !shared_ && to_ == 1) trouble_ = reason;
  if (!read) {  // the rank shall get the SIGPIPE that it would have got without us
    close(from_);
    from_ = -1;
  }
}

int relays::trouble() const {
  auto lost =
      std::find_if(all_.begin(), all_.end(), [](const relay& r) { return r.trouble() != 0; });
  return lost == all_.end() ? 0 : lost->trouble();
}

void relays::add_to(std::vector<pollfd>& set) const {
  for (const relay& one : all_)
    if (one.open()) set.push_back({one.source(), POLLIN, 0});
}

void relays::move() {
  for (relay& one : all_) one.move();
}

void relays::finish() {
  move();
  for (relay& one : all_) one.finish();
}

}  // namespace far::app
