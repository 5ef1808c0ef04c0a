// The name of this host, which MPIs look up when they start. Where it is in no table, each look-up
// asks name servers, and takes seconds if these do not answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace far::app {

struct job_state;
class findings;

/// A look-up that goes on by itself: nothing can be said about how long it takes.
class name_lookup {
 public:
  static std::shared_ptr<name_lookup> begin(const std::string& name);

  const std::string& name() const { return name_; }
  bool ended() const { return ended_at_ != 0; }
  bool found() const { return found_; }
  double seconds() const;  ///< how long it took, or has taken so far

 private:
  std::string name_;
  std::uint64_t began_at_ = 0;
  std::atomic<std::uint64_t> ended_at_ = 0;
  std::atomic<bool> found_ = false;
};

std::string host_name();

/// Ranks of this host alone need no name server to find each other: what processes to come ask of
/// one fails at once, and /etc/hosts still counts. Returns the former setting, for the ranks.
std::string ask_no_name_server();
/// Gives a rank back what ask_no_name_server() has returned.
void ask_name_servers_again(const std::string& former);

/// Says once, of a job whose ranks do not start, that this host's name may be the reason.
class slow_start {
 public:
  void look(const job_state&, std::uint64_t age_ns);

 private:
  std::shared_ptr<name_lookup> lookup_;
  bool said_ = false;
};

/// For `farside doctor`.
void examine_host_name(findings&);

}  // namespace far::app
