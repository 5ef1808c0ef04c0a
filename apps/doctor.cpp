// `farside doctor`: what this machine has, which back ends that makes usable, and what to do
// about the rest.

#include "doctor.hpp"

#include <algorithm>
#include <cstdio>

#include "run.hpp"

namespace far::app {

void findings::section(const std::string& title) { lines_.push_back({"", title, "", ""}); }

void findings::add(health state, std::string what, std::string found, std::string advice) {
  const char* words[] = {"ok", "warning", "missing"};
  lines_.push_back(
      {words[static_cast<int>(state)], std::move(what), std::move(found), std::move(advice)});
}

std::string findings::text() const {
  // One width for all sections: names line up over the whole page.
  std::size_t widest = 0;
  for (const line& one : lines_)
    if (!one.state.empty()) widest = std::max(widest, one.what.size());
  std::string result;
  for (const line& one : lines_) {
    if (one.state.empty()) {
      result += (result.empty() ? "" : "\n") + one.what + "\n";
      continue;
    }
    std::string left = "  " + one.state + std::string(9 - one.state.size(), ' ') + one.what +
                       std::string(widest - one.what.size() + 2, ' ');
    result += left + one.found + "\n";
    if (!one.advice.empty()) result += std::string(left.size(), ' ') + "-> " + one.advice + "\n";
  }
  return result;
}

int doctor_command(const arguments& words) {
  if (!words.empty()) {
    bool help = words[0] == "--help" || words[0] == "-h";
    if (!help)
      throw error(usage_error, "unknown argument " + words[0] + "; farside doctor takes none");
    std::fputs(
        "usage: farside doctor\n\nSays what this machine has, which back ends are usable, and what "
        "to install\n"
        "or set for the rest. Status 0 if the smp back end works.\n",
        stdout);
    return success;
  }
  findings found;
  examine_machine(found);
  bool smp = examine_kernel(found);
  examine_tools(found);
  usable_transports usable = examine_transports(found);
  examine_devices(found);

  found.section("Back ends");
  auto judge = [&](bool works, const char* name, const char* yes, const char* no) {
    found.add(works ? health::ok : health::missing, name, works ? yes : "not usable",
              works ? "" : no);
  };
  judge(smp, "smp", "usable", "the kernel lacks what is listed above");
  judge(usable.openmpi, "mpi, Open MPI", "usable", "apt-get install libopenmpi-dev openmpi-bin");
  judge(usable.mpich, "mpi, MPICH", "usable", "apt-get install libmpich-dev mpich");
  judge(usable.shmem, "shmem", "usable", "apt-get install libopenmpi-dev openmpi-bin");
  std::string carriers = "smp";
  for (const char* name : {"openmpi", "mpich", "shmem", "sim"})
    if (!find_companion("farside_" + std::string(name) + ".so").empty())
      carriers += std::string(", ") + name;
  bool others = carriers != "smp";
  found.add(others ? health::ok : health::missing, "any", "carried by " + carriers,
            others ? "" : "build farside where other back ends are: the target carriers");
  std::fputs(found.text().c_str(), stdout);
  return smp ? success : failure;
}

}  // namespace far::app
