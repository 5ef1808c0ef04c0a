// host_switch [--delay TIME] [--rate RATE] PROCESS...: the network between the hosts of scripts/hosts, when it is to
// be slow.
//
// It makes a TAP device, eth0, in the network namespace of each process named, and in its own, and
// passes frames between them as a switch does: to the port where the address was seen last, else to
// all. Each frame leaves `delay` after it came, behind those before it on the same port, which
// carries `rate`. What a port cannot carry is dropped, as on a wire. Segmentation is left
// to the receiver (vnet headers), so that one frame may be 64 KiB and the program is no bottleneck.

#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using address = std::array<char, 6>;

constexpr std::size_t header = 10;    ///< struct virtio_net_hdr; its file is not for C++
constexpr std::size_t ethernet = 14;  ///< two addresses and a type
constexpr std::size_t most_bytes = std::size_t{4} << 20;  ///< that wait for one port
constexpr std::size_t longest = 65536 + header + ethernet;

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

/// `50us` -> 50000, `1.5ms`, `2s`; and `1gbit` -> bytes a second.
double with_unit(const std::string& text, const std::map<std::string, double>& units) {
  char* end = nullptr;
  double number = std::strtod(text.c_str(), &end);
  auto unit = units.find(end);
  if (unit == units.end() || number < 0)
    throw std::runtime_error(
        "'" + text + "' is no number with one of the units that scripts/hosts --help lists");
  return number * unit->second;
}

class port {
 public:
  /// In the current network namespace.
  port() {
    fd_ = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0) fail("/dev/net/tun");
    ifreq request{};
    request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
    std::strcpy(request.ifr_name, "eth0");
    if (ioctl(fd_, TUNSETIFF, &request) != 0) fail("cannot make a TAP device");
    if (ioctl(fd_, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6) != 0)
      fail("cannot leave segmentation to a TAP device");
  }

  int descriptor() const { return fd_; }
  /// One frame; empty if there is none.
  std::string receive() const {
    char frame[longest];
    ssize_t n = read(fd_, frame, sizeof frame);
    return n < static_cast<ssize_t>(header + ethernet)
               ? std::string()
               : std::string(frame, static_cast<std::size_t>(n));
  }

  void enqueue(const std::string& frame, std::uint64_t at, double bytes_per_ns) {
    if (waiting_bytes_ + frame.size() > most_bytes) return;
    free_at_ = std::max(free_at_, at);
    if (bytes_per_ns > 0)
      free_at_ += static_cast<std::uint64_t>(static_cast<double>(frame.size()) / bytes_per_ns);
    waiting_.push_back({free_at_, frame});
    waiting_bytes_ += frame.size();
  }

  /// Sends what is due; when the next frame is, or never.
  std::uint64_t send_due() {
    while (!waiting_.empty()) {
      if (waiting_.front().due > monotonic_ns()) return waiting_.front().due;
      const std::string& frame = waiting_.front().frame;
      waiting_bytes_ -= frame.size();
      // What a link that is down or full does not take is lost, as on a wire.
      [[maybe_unused]] ssize_t taken = write(fd_, frame.data(), frame.size());
      waiting_.pop_front();
    }
    return ~std::uint64_t{0};
  }

 private:
  struct entry {
    std::uint64_t due;
    std::string frame;
  };

  int fd_ = -1;
  std::deque<entry> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t free_at_ = 0;
};

void enter_network(int fd) {
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) fail("cannot enter a network namespace");
}

std::vector<port> make_ports(const std::vector<std::string>& processes) {
  std::vector<port> ports;
  int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  for (const std::string& process : processes) {
    int there = open(("/proc/" + process + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
    enter_network(there);
    close(there);
    ports.emplace_back();
  }
  enter_network(own);
  close(own);
  ports.emplace_back();  // scripts/hosts waits for this one, so it is the last to appear
  return ports;
}

class ethernet_switch {
 public:
  ethernet_switch(std::vector<port> ports, std::uint64_t delay, double bytes_per_ns)
      : ports_(std::move(ports)), delay_(delay), bytes_per_ns_(bytes_per_ns) {}

  [[noreturn]] void run() {
    for (;;) {
      std::uint64_t next = ~std::uint64_t{0};
      for (port& one : ports_) next = std::min(next, one.send_due());
      wait_until(next);
      for (std::size_t i = 0; i < ports_.size(); ++i)
        for (std::string frame; !(frame = ports_[i].receive()).empty();) pass_on(i, frame);
    }
  }

 private:
  void wait_until(std::uint64_t next) {
    std::vector<pollfd> set;
    for (const port& one : ports_) set.push_back({one.descriptor(), POLLIN, 0});
    std::uint64_t now = monotonic_ns(), left = next > now ? next - now : 0;
    timespec time{static_cast<time_t>(left / 1'000'000'000),
                  static_cast<long>(left % 1'000'000'000)};
    ppoll(set.data(), set.size(), next == ~std::uint64_t{0} ? nullptr : &time, nullptr);
  }

  void pass_on(std::size_t from, const std::string& frame) {
    std::uint64_t due = monotonic_ns() + delay_;
    address to, source;
    frame.copy(to.data(), to.size(), header);
    frame.copy(source.data(), source.size(), header + to.size());
    seen_at_[source] = from;
    auto known = seen_at_.find(to);
    for (std::size_t i = 0; i < ports_.size(); ++i)
      if (i != from && (known == seen_at_.end() || known->second == i))
        ports_[i].enqueue(frame, due, bytes_per_ns_);
  }

  std::vector<port> ports_;
  std::uint64_t delay_;
  double bytes_per_ns_;
  std::map<address, std::size_t> seen_at_;
};

int serve(const std::vector<std::string>& words) {
  std::string delay = "0us", rate = "-";
  std::size_t i = 0;
  for (; i + 1 < words.size() && words[i].starts_with("--"); i += 2)
    (words[i] == "--delay" ? delay : rate) = words[i + 1];
  std::vector<std::string> processes(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
  double ns = with_unit(delay, {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}});
  double speed =
      rate == "-" ? 0 : with_unit(rate, {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}}) / 8e9;
  prctl(PR_SET_TIMERSLACK, 1);  // or a wait takes 50 us more
  ethernet_switch(make_ports(processes), static_cast<std::uint64_t>(ns), speed).run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return serve({argv + 1, argv + argc});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "host_switch: %s\n", problem.what());
    return 1;
  }
}
