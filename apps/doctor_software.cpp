// Compilers, build tools, communication libraries.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "doctor.hpp"
#include "support.hpp"

namespace far::app {

namespace {

/// Version of a Debian package, empty if there is no dpkg or no such package.
std::string package_version(const std::string& name) {
  return first_line_of({"dpkg-query", "-W", "-f", "${Version}", name});
}

bool have_header(const std::string& name) {
  for (const char* folder : {"/usr/include/", "/usr/local/include/"})
    if (access((folder + name).c_str(), R_OK) == 0) return true;
  return false;
}

/// A program that no C++17 compiler takes.
bool compiles_cxx20(const std::string& compiler) {
  std::string folder = (std::filesystem::temp_directory_path() / "farside-doctor.XXXXXX").string();
  if (!mkdtemp(folder.data())) return false;
  std::ofstream(folder + "/a.cpp")
      << "#include <concepts>\n#include <span>\n"
         "template <std::integral T> T twice(T x) { return x + x; }\n"
         "int main() { std::span<int> none; return twice(static_cast<int>(none.size())); }\n";
  captured result = capture({compiler, "-std=c++20", "-fsyntax-only", folder + "/a.cpp"}, 20);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result.ended && result.status == 0;
}

void examine_compiler(findings& found, const std::string& name, const std::string& advice) {
  std::string path = find_in_path(name), version = first_line_of({name, "--version"});
  if (path.empty()) return found.add(health::missing, name, "not installed", advice);
  bool modern = compiles_cxx20(name);
  found.add(modern ? health::ok : health::warning, name,
            version + (modern ? ", C++20" : ", does not compile C++20"),
            modern ? "" : "use g++ 12 or later, or clang 16 or later");
}

void examine_tool(findings& found, const std::string& name, const std::string& package) {
  std::string version = first_line_of({name, "--version"});
  found.add(version.empty() ? health::missing : health::ok, name,
            version.empty() ? "not installed" : version,
            version.empty() ? "apt-get install " + package : "");
}

/// The second line of hydra's --version: `Version: 4.0.2`.
std::string mpich_version(const std::string& starter) {
  std::istringstream lines(capture({starter, "--version"}).text);
  for (std::string line; std::getline(lines, line);)
    if (std::size_t at = line.find("Version:"); at != std::string::npos)
      return trimmed(line.substr(at + 8));
  return "";
}

bool version_at_least(const std::string& version, int major) {
  return std::atoi(version.c_str()) >= major;
}

/// `mpirun.openmpi (OpenRTE) 4.1.4`: the last word.
std::string last_word(const std::string& line) { return line.substr(line.rfind(' ') + 1); }

std::string first_found(const arguments& names) {
  for (const std::string& name : names)
    if (std::string path = find_in_path(name); !path.empty()) return path;
  return "";
}

bool examine_openmpi(findings& found) {
  std::string starter;
  for (const char* name : {"mpirun.openmpi", "mpirun"})
    if (starter.empty() && capture({name, "--version"}).text.find("open-mpi") != std::string::npos)
      starter = find_in_path(name);
  std::string wrapper = first_found({"mpicxx.openmpi", "mpicxx"});
  if (starter.empty()) {
    found.add(health::missing, "Open MPI", "not installed",
              "apt-get install libopenmpi-dev openmpi-bin");
    return false;
  }
  std::string version = last_word(first_line_of({starter, "--version"}));
  bool old = !version_at_least(version, 5);
  found.add(old ? health::warning : health::ok, "Open MPI",
            version + ", " + starter + (wrapper.empty() ? ", no mpicxx" : ", " + wrapper),
            wrapper.empty() ? "to build for it: apt-get install libopenmpi-dev"
            : old ? "its osc/rdma crashes in compare-and-swap: farside run passes --mca osc ^rdma; "
                    "do so under plain mpirun"
                  : "");
  return !wrapper.empty();
}

bool examine_mpich(findings& found) {
  std::string starter = first_found({"mpiexec.mpich", "mpiexec.hydra"});
  std::string wrapper = first_found({"mpicxx.mpich"});
  std::string version = starter.empty() ? "" : mpich_version(starter);
  if (version.empty()) {
    found.add(health::missing, "MPICH", "not installed", "apt-get install libmpich-dev mpich");
    return false;
  }
  bool hangs = version.starts_with("4.0.");
  found.add(hangs ? health::warning : health::ok, "MPICH",
            version + ", " + starter + (wrapper.empty() ? ", no mpicxx.mpich" : ", " + wrapper),
            wrapper.empty() ? "to build for it: apt-get install libmpich-dev"
            : hangs ? "over TCP its MPI_Finalize hangs with 3 or more ranks; on one host it does "
                      "not. A remote operation "
                      "waits for a busy target; MPIR_CVAR_ASYNC_PROGRESS=1 helps"
                    : "");
  return !wrapper.empty();
}

bool examine_openshmem(findings& found) {
  std::string starter = find_in_path("oshrun"),
              wrapper = first_found({"oshc++", "oshCC", "oshcxx"});
  if (starter.empty() || wrapper.empty()) {
    found.add(health::missing, "OpenSHMEM", "not installed",
              "apt-get install libopenmpi-dev openmpi-bin");
    return false;
  }
  found.add(health::warning, "OpenSHMEM",
            "of Open MPI " + last_word(first_line_of({starter, "--version"})) + ", " + starter +
                ", " + wrapper,
            "shmem_finalize crashes with memory/patcher: farside run passes --mca memory ^patcher; "
            "do so under plain oshrun");
  return true;
}

void examine_library(findings& found, const std::string& name, const std::string& header,
                     const std::string& package, const std::string& purpose) {
  std::string version = package_version(package);
  bool there = have_header(header);
  found.add(there ? health::ok : health::missing, name,
            there ? (version.empty() ? header : version) : "not installed", there ? "" : purpose);
}

}  // namespace

void examine_tools(findings& found) {
  found.section("Compilers and tools");
  examine_compiler(found, "g++", "apt-get install g++");
  examine_compiler(found, find_in_path("clang++-19").empty() ? "clang++" : "clang++-19",
                   "only if you prefer it: apt-get install clang");
  examine_tool(found, "cmake", "cmake");
  examine_tool(found, "ninja", "ninja-build");
  examine_library(found, "cereal", "cereal/cereal.hpp", "libcereal-dev",
                  "only for types that have its functions already: apt-get install libcereal-dev");
}

usable_transports examine_transports(findings& found) {
  found.section("Communication libraries");
  usable_transports usable;
  usable.openmpi = examine_openmpi(found);
  usable.mpich = examine_mpich(found);
  usable.shmem = examine_openshmem(found);
  examine_library(
      found, "UCX", "ucp/api/ucp.h", "libucx-dev",
      "comes with the MPIs where they need it; its headers: apt-get install libucx-dev");
  std::string providers;
  std::istringstream lines(capture({"fi_info", "-l"}).text);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line.back() == ':')
      providers += (providers.empty() ? "" : ", ") + line.substr(0, line.size() - 1);
  if (!providers.empty())
    found.add(health::ok, "libfabric", "providers: " + providers);
  else
    examine_library(found, "libfabric", "rdma/fabric.h", "libfabric-dev",
                    "headers and fi_info: apt-get install libfabric-dev libfabric-bin");
  const char* gasnet = getenv("GASNET_ROOT");
  bool there = gasnet || have_header("gasnetex.h");
  found.add(there ? health::ok : health::missing, "GASNet-EX",
            there ? (gasnet ? gasnet : "installed") : "not found",
            there ? "" : "not in Debian: build it from gasnet.lbl.gov and set GASNET_ROOT");
  return usable;
}

}  // namespace far::app
