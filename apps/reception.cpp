#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "job.hpp"
#include "reach.hpp"
#include "support.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;

constexpr std::size_t most_strangers = 64;  ///< beyond the ranks: whoever else knocks
constexpr std::size_t most_addresses = 16;

/// Addresses of this host that others may reach, as text with a blank before each.
std::string addresses() {
  std::string text;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return text;
  std::size_t n = 0;
  for (ifaddrs* one = all; one && n < most_addresses; one = one->ifa_next) {
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK)) continue;
    char name[INET6_ADDRSTRLEN] = "";
    if (one->ifa_addr->sa_family == AF_INET)
      inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in*>(one->ifa_addr)->sin_addr, name,
                sizeof name);
    if (one->ifa_addr->sa_family == AF_INET6) {
      auto& address = reinterpret_cast<sockaddr_in6*>(one->ifa_addr)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&address)) inet_ntop(AF_INET6, &address, name, sizeof name);
    }
    if (!name[0]) continue;
    text += " " + std::string(name);
    ++n;
  }
  freeifaddrs(all);
  return text;
}

/// On IPv6 and IPv4, or on IPv4 alone where there is nothing else; its port.
std::uint16_t listen_anywhere(int& fd) {
  for (int kind : {AF_INET6, AF_INET}) {
    fd = socket(kind, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    int no = 0;
    sockaddr_in6 any{};  // zero is any address and any port, in both
    any.sin6_family = static_cast<sa_family_t>(kind);
    socklen_t size = kind == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (kind == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, reinterpret_cast<sockaddr*>(&any), size) == 0 && listen(fd, 1024) == 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&any), &size) == 0)
      return ntohs(any.sin6_port);  // sin_port lies at the same place
    close(fd);
    fd = -1;
  }
  return 0;
}

void write_calls(far::job_board::slot& slot, const reach::news& news) {
  for (std::size_t i = 0; i <= far::job_board::kept_calls; ++i) {
    far::job_board::called& to = i < far::job_board::kept_calls ? slot.calls[i] : slot.call;
    const reach::news::call& from = news.calls[i];
    to.number = 0;
    memcpy(to.name, from.name, sizeof to.name);
    memcpy(to.file, from.file, sizeof to.file);
    to.line = from.line;
    to.number = from.number;
  }
  memcpy(slot.subject, news.subject, sizeof slot.subject);
  slot.subject_ready = news.subject_ready;
  slot.entered = news.entered;
  slot.inside = news.inside;
  if (news.left <= static_cast<std::uint32_t>(far::job_board::leaving::runtime))
    slot.left = static_cast<far::job_board::leaving>(news.left);
}

void write_down(ledger& book, std::size_t i, const reach::news& news) {
  far::job_board::slot& slot = (*book.board)[i];
  slot.pid = news.pid;
  slot.rank = news.rank;
  slot.world = news.world;
  slot.waits = {static_cast<far::job_board::waiting>(news.waits), news.waits_on};
  slot.waits_since = news.waits_for_ns ? monotonic_ns() - news.waits_for_ns : 0;
  slot.collectives = news.collectives;
  slot.secondary_failure = news.secondary_failure;
  write_calls(slot, news);
  if (news.message_ready) {
    char text[sizeof news.message];
    memcpy(text, news.message, sizeof text);
    text[sizeof text - 1] = '\0';
    slot.say(text);
  }
  if (news.state <= static_cast<std::uint32_t>(far::job_board::rank_state::refused))
    slot.state = static_cast<far::job_board::rank_state>(news.state);
  book.records[i].pid = news.process;
  if (news.told) book.records[i].told = 1;
  if (news.reaped && !slot.reaped) book.reaped(i, static_cast<int>(news.wait_status));
}

template <class Message>
bool take(std::string& unread, Message& message) {
  if (unread.size() < sizeof message) return false;
  memcpy(&message, unread.data(), sizeof message);
  unread.erase(0, sizeof message);
  return true;
}

}  // namespace

void reach::watch_line(int fd, int idle, int interval, int timeout_ms) {
  int yes = 1, probes = 3;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

reception::~reception() {
  if (listener_ >= 0) close(listener_);
  for (const caller& one : strangers_) close(one.fd);
  for (const auto& [slot, one] : callers_)
    if (one.fd >= 0) close(one.fd);
}

std::string reception::open(std::uint64_t job, std::uint32_t ranks) {
  std::string where = addresses();
  if (where.empty() || getrandom(&secret_, sizeof secret_, 0) != sizeof secret_) return "";
  std::uint16_t port = listen_anywhere(listener_);
  if (port == 0) return "";
  rlimit files{};  // a descriptor each
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < ranks + 256u) {
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, ranks + 256u);
    setrlimit(RLIMIT_NOFILE, &files);
  }
  job_ = job;
  ranks_ = ranks;
  char text[64];
  std::snprintf(text, sizeof text, "%016llx %016llx %u",
                static_cast<unsigned long long>(secret_[0]),
                static_cast<unsigned long long>(secret_[1]), port);
  return text + where;
}

void reception::add_to(std::vector<pollfd>& set) const {
  if (listener_ >= 0) set.push_back({listener_, POLLIN, 0});
  for (const caller& one : strangers_) set.push_back({one.fd, POLLIN, 0});
  for (const auto& [slot, one] : callers_)
    if (one.fd >= 0) set.push_back({one.fd, POLLIN, 0});
}

void reception::accept_callers() {
  for (int fd; (fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
    reach::watch_line(fd, 1, 1, 4'000);
    reach::greeting words{reach::magic, job_};
    if (strangers_.size() >= ranks_ + most_strangers ||
        ::send(fd, &words, sizeof words, MSG_NOSIGNAL) != sizeof words)
      close(fd);
    else
      strangers_.push_back({fd, "", "", monotonic_ns()});
  }
}

bool reception::receive(caller& from) {
  char block[16384];
  for (;;) {
    ssize_t n = recv(from.fd, block, sizeof block, 0);
    if (n > 0) from.unread.append(block, static_cast<std::size_t>(n));
    if (n > 0 && from.unread.size() < 4 * sizeof block) continue;
    if (n < 0 && errno == EINTR) continue;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  }
}

std::optional<std::size_t> reception::identify(caller& from, ledger& book) {
  reach::hello words;
  if (!take(from.unread, words)) return std::nullopt;
  bool welcome = words.word == secret_ && words.slot < ranks_ && !callers_.contains(words.slot);
  if (!welcome) return ranks_;
  from.host.assign(words.host, strnlen(words.host, sizeof words.host));
  (*book.board)[words.slot].supervisor = words.supervisor;
  return words.slot;
}

void reception::take_news(ledger& book) {
  if (listener_ < 0) return;
  accept_callers();
  for (std::size_t i = 0; i < strangers_.size();) {
    caller& one = strangers_[i];
    bool there = receive(one) && monotonic_ns() - one.since < 10 * second;
    std::optional<std::size_t> slot = identify(one, book);
    if (slot && *slot < ranks_)
      callers_.emplace(*slot, std::move(one));
    else if (slot || !there)
      close(one.fd);
    else {
      ++i;
      continue;
    }
    strangers_.erase(strangers_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (auto& [slot, one] : callers_) {
    if (one.fd < 0) continue;
    bool there = receive(one);
    for (reach::news news; take(one.unread, news);) write_down(book, slot, news);
    if (there) continue;
    close(one.fd);
    one.fd = -1;
    if (!(*book.board)[slot].reaped) book.lost(slot);
  }
}

std::string reception::host_of(std::size_t slot) const {
  auto one = callers_.find(slot);
  return one == callers_.end() ? "" : one->second.host;
}

bool reception::send(std::size_t slot, int signal) {
  auto one = callers_.find(slot);
  if (one == callers_.end()) return false;
  reach::order words{static_cast<std::uint32_t>(signal)};
  if (one->second.fd >= 0) ::send(one->second.fd, &words, sizeof words, MSG_NOSIGNAL);
  return true;
}

}  // namespace far::app
