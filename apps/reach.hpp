// How the launcher reaches ranks on other hosts: a TCP connection from the supervisor of each.
//
//   supervisor                                launcher
//      connects ------------------------------> accepts
//               <------------- greeting: the job   (its id, which everybody may know)
//      hello: secret, slot, host ------------->     (only to the launcher that greeted so)
//      news: the rank's slot, as it changes --->    written to the board
//               <------------- order: a signal
//      closes --------------------------------->    the rank's end is known by then; if not, it is
//      lost
//
// So the board shows the ranks of all hosts, and its readers need not care where a rank runs. The
// secret travels in the environment only. Both ends are the same program on machines of one kind.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "farside/base/job_board.hpp"

namespace far::app {

struct ledger;

namespace reach {

/// Environment: secret, port and addresses of the launcher.
inline constexpr const char* variable = "FARSIDE_LAUNCHER";
inline constexpr std::uint64_t magic = 0x31'68'63'61'65'72'72'66;  // "frreach1"

using secret = std::array<std::uint64_t, 2>;

struct greeting {
  std::uint64_t magic, job;
};

struct hello {
  secret word;
  std::uint32_t slot, supervisor;
  char host[64];
};

/// A slot and its record, but for what only the launcher writes.
struct news {
  std::uint32_t pid, state, rank, world, waits, waits_on;
  std::uint64_t waits_for_ns, collectives;  ///< how long: clocks of two hosts do not compare
  std::uint32_t reaped, wait_status, secondary_failure, process, told, message_ready;
  char message[sizeof(far::job_board::slot::message)];
  std::uint32_t left, subject_ready;
  std::uint64_t inside, entered;
  char subject[sizeof(far::job_board::slot::subject)];
  struct call {
    std::uint64_t number;
    char name[sizeof(far::job_board::called::name)], file[sizeof(far::job_board::called::file)];
    std::uint32_t line;
  } calls[far::job_board::kept_calls + 1];  ///< the last one is slot::call
};

struct order {
  std::uint32_t signal;  ///< or `dismissed`
};

/// All ranks have ended: supervisors that wait for that may go.
inline constexpr int dismissed = 1000;

/// A host that is switched off says nothing. The other end is asked after `idle` seconds of silence
/// and then every `interval`, and is lost after three questions, or when what was sent to it has
/// not arrived after `timeout_ms`.
void watch_line(int fd, int idle, int interval, int timeout_ms);

}  // namespace reach

/// The launcher's side.
class reception {
 public:
  reception() = default;
  reception(const reception&) = delete;
  reception& operator=(const reception&) = delete;
  ~reception();

  /// Listens on all addresses of this host, for this many ranks. Returns what supervisors must
  /// know, for `reach::variable`; empty if this host has no network, so that no supervisor can call.
  std::string open(std::uint64_t job, std::uint32_t ranks);

  void add_to(std::vector<pollfd>& set) const;
  /// Lets callers in, and writes their news to the board.
  void take_news(ledger& book);

  bool knows(std::size_t slot) const { return callers_.contains(slot); }
  /// Where the rank runs; empty for one on this host.
  std::string host_of(std::size_t slot) const;
  /// False if that rank's supervisor has never called.
  bool send(std::size_t slot, int signal);

 private:
  struct caller {
    int fd = -1;
    std::string host;
    std::string unread;
    std::uint64_t since = 0;
  };

  void accept_callers();
  /// False at the end of the connection.
  static bool receive(caller& from);
  std::optional<std::size_t> identify(caller& from, ledger& book);

  int listener_ = -1;
  std::uint64_t job_ = 0;
  std::uint32_t ranks_ = 0;
  reach::secret secret_{};
  std::vector<caller> strangers_;          ///< who have not said hello yet
  std::map<std::size_t, caller> callers_;  ///< by slot; without descriptor once they have hung up
};

/// The supervisor's side.
class uplink {
 public:
  uplink() = default;
  uplink(const uplink&) = delete;
  uplink& operator=(const uplink&) = delete;
  ~uplink();

  /// Calls the launcher; `where` is the value of `reach::variable`. Within 5 s, or false.
  bool call(const std::string& where, std::uint64_t job, std::uint64_t slot);

  bool open() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  /// Tells the launcher what has changed in the slot. False if it does not listen any more.
  bool report(ledger& book, std::size_t slot);
  /// A signal that the launcher wants sent to the rank; 0 if there is none now, -1 if it hung up.
  int next_order();

 private:
  int fd_ = -1;
  std::string last_;    ///< what was reported
  std::string unread_;  ///< part of an order
};

}  // namespace far::app
