#include "host_name.hpp"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "doctor.hpp"
#include "job.hpp"
#include "support.hpp"

namespace far::app {

namespace {

using far::job_board::monotonic_ns;

constexpr const char* resolver_variable = "RES_OPTIONS";

std::string line_for(const std::string& name) {
  return (name == "localhost" ? "127.0.0.1 " : "127.0.1.1 ") + name;
}

bool some_rank_started(const job_state& job) {
  for (std::size_t i = 0; i < job.options.ranks; ++i)
    if ((*job.book.board)[i].state.load() != far::job_board::rank_state::unborn) return true;
  return false;
}

}  // namespace

std::shared_ptr<name_lookup> name_lookup::begin(const std::string& name) {
  auto result = std::make_shared<name_lookup>();
  result->name_ = name;
  result->began_at_ = monotonic_ns();
  std::thread([result] {
    addrinfo wanted{}, *list = nullptr;
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    result->found_ = getaddrinfo(result->name_.c_str(), nullptr, &wanted, &list) == 0;
    if (list != nullptr) freeaddrinfo(list);
    result->ended_at_ = monotonic_ns();
  }).detach();
  return result;
}

double name_lookup::seconds() const {
  std::uint64_t end = ended_at_;
  return 1e-9 * static_cast<double>((end != 0 ? end : monotonic_ns()) - began_at_);
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string ask_no_name_server() {
  const char* given = getenv(resolver_variable);
  std::string former = given ? given : "";
  setenv(resolver_variable, (former + (former.empty() ? "" : " ") + "attempts:0").c_str(), 1);
  return former;
}

void ask_name_servers_again(const std::string& former) {
  if (former.empty())
    unsetenv(resolver_variable);
  else
    setenv(resolver_variable, former.c_str(), 1);
}

void slow_start::look(const job_state& job, std::uint64_t age_ns) {
  constexpr std::uint64_t patience = 2 * second;
  constexpr double slow = 1;
  if (said_ || !job.supervised() || age_ns < patience) return;
  if (some_rank_started(job)) {
    said_ = true;
    return;
  }
  if (!lookup_) lookup_ = name_lookup::begin(host_name());
  double taken = lookup_->seconds();
  if (taken >= slow) {
    std::fprintf(
        stderr,
        "farside run: no rank has started after %s. To look up the name of this host, '%s', takes "
        "%s%s, and MPI does so when it starts. Add this line to /etc/hosts: %s\n",
        human_time(1e-9 * static_cast<double>(age_ns)).c_str(), lookup_->name().c_str(),
        lookup_->ended() ? "" : "longer than ", human_time(taken).c_str(),
        line_for(lookup_->name()).c_str());
    said_ = true;
  }
  if (lookup_->ended()) said_ = true;  // a quick answer: that is not the reason
}

void examine_host_name(findings& found) {
  constexpr double patience = 3;
  std::shared_ptr<name_lookup> lookups[] = {name_lookup::begin(host_name()),
                                            name_lookup::begin("localhost")};
  for (const auto& lookup : lookups) {
    while (!lookup->ended() && lookup->seconds() < patience) usleep(1000);
    bool good = lookup->ended() && lookup->found() && lookup->seconds() < 1;
    std::string what = "'" + lookup->name() + "' ";
    if (good)
      what += "resolves";
    else if (!lookup->ended())
      what += "is still being looked up after " + human_time(patience);
    else
      what += (lookup->found() ? "resolves after " : "does not resolve, after ") +
              human_time(lookup->seconds());
    if (good && lookup->name() == "localhost") continue;
    found.add(good ? health::ok : health::warning, "host name", what,
              good ? ""
                   : "MPI and OpenSHMEM may look it up, and start slowly; add this line to "
                     "/etc/hosts: " +
                         line_for(lookup->name()));
  }
}

}  // namespace far::app
