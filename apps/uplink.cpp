#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <sstream>

#include "job.hpp"
#include "reach.hpp"
#include "support.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;

/// Begins to connect; -1 if the address is of no use here.
int begin_call(const std::string& address, std::uint16_t port) {
  sockaddr_in6 to{};
  auto* to4 = reinterpret_cast<sockaddr_in*>(&to);
  socklen_t size = 0;
  if (inet_pton(AF_INET, address.c_str(), &to4->sin_addr) == 1) {
    to4->sin_family = AF_INET;
    size = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, address.c_str(), &to.sin6_addr) == 1) {
    to.sin6_family = AF_INET6;
    size = sizeof(sockaddr_in6);
  } else {
    return -1;
  }
  to.sin6_port = htons(port);  // sin_port lies at the same place
  int family = size == sizeof(sockaddr_in) ? AF_INET : AF_INET6;
  int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), size) == 0 || errno == EINPROGRESS) return fd;
  close(fd);
  return -1;
}

/// The first of these connections at whose other end that job's launcher is; closes the others.
int who_answers(std::vector<int> calls, std::uint64_t job) {
  std::uint64_t until = monotonic_ns() + 5 * second;
  int answered = -1;
  while (!calls.empty() && answered < 0 && monotonic_ns() < until) {
    std::vector<pollfd> set;
    for (int fd : calls) set.push_back({fd, POLLIN, 0});
    poll(set.data(), set.size(), 500);
    for (const pollfd& one : set) {
      reach::greeting words{};
      if (!one.revents || answered >= 0) continue;
      ssize_t n = recv(one.fd, &words, sizeof words, MSG_PEEK);
      if (n > 0 && n < static_cast<ssize_t>(sizeof words)) continue;  // the rest is under way
      std::erase(calls, one.fd);
      if (n == sizeof words && words.magic == reach::magic && words.job == job)
        answered = one.fd;
      else
        close(one.fd);
    }
  }
  for (int fd : calls) close(fd);
  return answered;
}

}  // namespace

uplink::~uplink() {
  if (fd_ >= 0) close(fd_);
}

bool uplink::call(const std::string& where, std::uint64_t job, std::uint64_t slot) {
  std::istringstream in(where);
  reach::hello hello{};
  std::uint16_t port = 0;
  in >> std::hex >> hello.word[0] >> hello.word[1] >> std::dec >> port;
  std::vector<int> calls;
  for (std::string address; in >> address;)
    if (int fd = begin_call(address, port); fd >= 0) calls.push_back(fd);
  int fd = who_answers(std::move(calls), job);
  if (fd < 0) return false;

  reach::greeting heard{};
  bool good = recv(fd, &heard, sizeof heard, 0) == sizeof heard;
  reach::watch_line(fd, 5, 2, 10'000);
  hello.slot = static_cast<std::uint32_t>(slot);
  hello.supervisor = static_cast<std::uint32_t>(getpid());
  gethostname(hello.host, sizeof hello.host - 1);
  if (!good || send(fd, &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    close(fd);
    return false;
  }
  fd_ = fd;
  return true;
}

/// What the rank has said about its collectives, for the launcher to compare.
static void copy_calls(const far::job_board::slot& slot, reach::news& news) {
  news.left = static_cast<std::uint32_t>(slot.left.load(std::memory_order_acquire));
  news.inside = slot.inside;
  news.entered = slot.entered;
  news.subject_ready = slot.subject_ready.load(std::memory_order_acquire);
  if (news.subject_ready) memcpy(news.subject, slot.subject, sizeof news.subject);
  for (std::size_t i = 0; i <= far::job_board::kept_calls; ++i) {
    const far::job_board::called& from = i < far::job_board::kept_calls ? slot.calls[i] : slot.call;
    reach::news::call& to = news.calls[i];
    std::uint64_t number = from.number.load(std::memory_order_acquire);
    memcpy(to.name, from.name, sizeof to.name);
    memcpy(to.file, from.file, sizeof to.file);
    to.line = from.line;
    to.number = from.number.load(std::memory_order_acquire) == number ? number : 0;
  }
}

bool uplink::report(ledger& book, std::size_t i) {
  if (fd_ < 0) return true;
  far::job_board::slot& slot = (*book.board)[i];
  reach::news news;
  memset(&news, 0, sizeof news);  // it is compared as bytes
  news.reaped = slot.reaped.load(std::memory_order_acquire);
  news.state = static_cast<std::uint32_t>(slot.state.load());
  news.message_ready = slot.message_ready.load(std::memory_order_acquire);
  if (news.message_ready) memcpy(news.message, slot.message, sizeof news.message);
  auto [what, on] = slot.waits.load();
  std::uint64_t since = slot.waits_since, now = monotonic_ns();
  news.pid = slot.pid;
  news.rank = slot.rank;
  news.world = slot.world;
  news.waits = static_cast<std::uint32_t>(what);
  news.waits_on = on;
  news.collectives = slot.collectives;
  news.wait_status = slot.wait_status;
  news.secondary_failure = slot.secondary_failure;
  news.process = book.records[i].pid;
  news.told = book.records[i].told;
  copy_calls(slot, news);
  news.waits_for_ns = since;
  std::string bytes(reinterpret_cast<const char*>(&news), sizeof news);
  if (bytes == last_) return true;
  last_ = bytes;
  news.waits_for_ns = since && since < now ? now - since : 0;
  for (std::size_t done = 0; done < sizeof news;) {
    const char* rest = reinterpret_cast<const char*>(&news) + done;
    ssize_t n = send(fd_, rest, sizeof news - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd one{fd_, POLLOUT, 0};
      if (poll(&one, 1, 5000) > 0) continue;  // longer: nobody reads any more
    }
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

int uplink::next_order() {
  if (fd_ < 0) return 0;
  char block[64];
  ssize_t n = recv(fd_, block, sizeof block, MSG_DONTWAIT);
  if (n > 0) unread_.append(block, static_cast<std::size_t>(n));
  reach::order words;
  if (unread_.size() >= sizeof words) {
    memcpy(&words, unread_.data(), sizeof words);
    unread_.erase(0, sizeof words);
    return static_cast<int>(words.signal);
  }
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return -1;
  return 0;
}

}  // namespace far::app
