#include "privacy.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>

namespace far::app {

namespace {

/// `value` after what a variable holds already.
void append_to(const char* name, const std::string& value) {
  const char* before = getenv(name);
  if (before && strstr(before, value.c_str())) return;
  setenv(name, (before && *before ? before + (":" + value) : value).c_str(), 1);
}

std::string guard_path() {
  std::string here = self_directory();
  for (const std::string& folder : {here, here + "/../libexec/farside"})
    if (std::string path = folder + "/farside_guard.so"; access(path.c_str(), R_OK) == 0)
      return path;
  return "";
}

}  // namespace

bool has_loopback() {
  bool found = false;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return false;
  for (ifaddrs* one = all; one; one = one->ifa_next)
    found |= one->ifa_addr && one->ifa_addr->sa_family == AF_INET && (one->ifa_flags & IFF_UP) &&
             strcmp(one->ifa_name, "lo") == 0;
  freeifaddrs(all);
  return found;
}

bool preload_guard(guarded what) {
  std::string path = guard_path();
  if (path.empty()) return false;
  append_to("LD_PRELOAD", path);
  setenv("FARSIDE_GUARD",
         what == guarded::starter            ? "starter"
         : what == guarded::servers          ? "server"
         : what == guarded::rank_of_one_host ? "rank"
                                             : "memory",
         1);
  // A program of the address sanitizer refuses to start behind a preloaded library.
  if (what != guarded::starter) append_to("ASAN_OPTIONS", "verify_asan_link_order=0");
  return true;
}

std::string guard_list(const std::string& scratch) { return scratch + "/made_by_ranks"; }

void remove_listed_files(const std::string& scratch) {
  std::set<std::string> left;
  std::ifstream list(guard_list(scratch));
  for (std::string what, path; list >> what >> path;)
    if (what == "made")
      left.insert(path);
    else
      left.erase(path);
  for (const std::string& path : left) {
    struct stat info;
    bool known = path.find("/mpich_shar_tmp") != std::string::npos;
    if (known && lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == geteuid())
      unlink(path.c_str());
  }
}

void let_hangups_end_ranks() { setenv("UCX_DEBUG_SIGNO", "0", 0); }

std::string keep_ucx_off_networks() {
  for (const char* name : {"UCX_TLS", "UCX_NET_DEVICES"})
    if (getenv(name)) return "";
  setenv("UCX_TLS", "self,sm", 1);
  return "UCX_TLS=self,sm";
}

}  // namespace far::app
