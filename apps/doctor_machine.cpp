// Cores, memory, limits, kernel, devices.

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "doctor.hpp"
#include "farside/base/nvshmem_places.hpp"
#include "host_name.hpp"
#include "machine.hpp"
#include "support.hpp"

namespace far::app {

namespace {

void examine_cores(findings& found) {
  cores here = count_cores();
  std::string text = std::to_string(here.online) + " online";
  std::string advice;
  if (here.allowed < here.online) {
    text += ", " + std::to_string(here.allowed) + " allowed by the affinity mask";
    advice = "more ranks than allowed cores share them; taskset or the batch system set the mask";
  }
  if (here.quota) {
    char quota[64];
    std::snprintf(quota, sizeof quota, ", the cgroup grants the time of %.1f", *here.quota);
    text += quota;
    if (*here.quota < here.allowed)
      advice = "ranks above that are stopped for part of each period; start no more than that";
  }
  found.add(advice.empty() ? health::ok : health::warning, "cores", text, advice);
}

void examine_memory(findings& found) {
  memory here = measure_memory();
  std::string text = human_size(here.total) + ", " + human_size(here.available) + " available";
  if (here.limit && *here.limit < here.total)
    text += ", the cgroup allows " + human_size(*here.limit);
  bool little = here.available < (std::uint64_t{1} << 30);
  found.add(little ? health::warning : health::ok, "memory", text,
            little ? "give the ranks small segments: farside run --segment 64M" : "");

  struct statvfs shm;
  if (statvfs("/dev/shm", &shm) != 0) {
    found.add(health::warning, "/dev/shm", "none",
              "MPIs need it: mount -t tmpfs tmpfs /dev/shm (smp does not)");
  } else {
    std::uint64_t size = std::uint64_t{shm.f_blocks} * shm.f_frsize,
                  free = std::uint64_t{shm.f_bavail} * shm.f_frsize;
    bool small = free < (std::uint64_t{256} << 20);
    found.add(small ? health::warning : health::ok, "/dev/shm",
              human_size(size) + ", " + human_size(free) + " free",
              small ? "MPI windows lie there (smp does not use it): docker run --shm-size=1g, or "
                      "remount it larger"
                    : "");
  }
}

std::string limit_text(rlim_t value, bool bytes) {
  if (value == RLIM_INFINITY) return "unlimited";
  return bytes ? human_size(value) : std::to_string(value);
}

void examine_limits(findings& found) {
  rlimit limit;
  getrlimit(RLIMIT_MEMLOCK, &limit);
  bool low = limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < (std::uint64_t{1} << 30);
  bool rdma = std::filesystem::exists("/sys/class/infiniband");
  found.add(
      low && rdma ? health::warning : health::ok, "locked memory", limit_text(limit.rlim_cur, true),
      low && rdma
          ? "RDMA registers segments: ulimit -l unlimited, or memlock in /etc/security/limits.conf"
          : "");
  getrlimit(RLIMIT_NOFILE, &limit);
  bool few = limit.rlim_max != RLIM_INFINITY && limit.rlim_max < 1024;
  found.add(few ? health::warning : health::ok, "open files",
            limit_text(limit.rlim_cur, false) + ", at most " + limit_text(limit.rlim_max, false),
            few ? "farside run --prefix uses two per rank: raise it (ulimit -Hn)" : "");
  getrlimit(RLIMIT_NPROC, &limit);
  found.add(health::ok, "processes", limit_text(limit.rlim_cur, false));
}

void examine_pages(findings& found) {
  std::string huge = first_line_of_file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string shmem = first_line_of_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  auto chosen = [](const std::string& line) {
    std::size_t begin = line.find('['), end = line.find(']');
    return begin == std::string::npos ? std::string("not in this kernel")
                                      : line.substr(begin + 1, end - begin - 1);
  };
  found.add(health::ok, "huge pages",
            first_line_of_file("/proc/sys/vm/nr_hugepages") +
                " reserved; transparent: " + chosen(huge) + ", for shared memory: " + chosen(shmem),
            chosen(shmem) == "never" ? "fewer TLB misses in large segments: echo advise > "
                                       "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
                                     : "");
}

/// The library that programs open when they first ask for device memory. It is not started here.
void examine_nvshmem(findings& found) {
  for (const std::string& place : detail::nvshmem_places()) {
    if (void* library = dlopen(place.c_str(), RTLD_LAZY)) {
      dlclose(library);
      found.add(health::ok, "NVSHMEM", place);
      return;
    }
    const char* why = dlerror();
    if (access(place.c_str(), R_OK) == 0) {
      found.add(health::warning, "NVSHMEM",
                "cannot be opened: " + (why != nullptr ? std::string(why) : place),
                "only for GPU memory: install what it needs, or another one");
      return;
    }
  }
  found.add(
      health::missing, "NVSHMEM", "not found",
      "only for GPU memory: python3 -m pip install nvidia-nvshmem-cu13, or set FARSIDE_NVSHMEM to "
      "its libnvshmem_host.so.3");
}

}  // namespace

void examine_machine(findings& found) {
  found.section("Machine");
  examine_cores(found);
  examine_memory(found);
  examine_limits(found);
  examine_pages(found);
  examine_host_name(found);
}

bool examine_kernel(findings& found) {
  found.section("Kernel");
  utsname name;
  uname(&name);
  found.add(health::ok, "version",
            std::string(name.sysname) + " " + name.release + " " + name.machine);

  int memory = memfd_create("farside doctor", MFD_CLOEXEC);
  std::string path = "/proc/self/fd/" + std::to_string(memory);
  bool reopened = memory >= 0 && access(path.c_str(), R_OK | W_OK) == 0;
  found.add(
      memory >= 0 ? health::ok : health::missing, "memfd_create", memory >= 0 ? "works" : "refused",
      memory >= 0 ? "" : "smp shares memory by it: Linux 3.17 or later, not blocked by seccomp");
  found.add(reopened ? health::ok : health::missing, "/proc",
            reopened ? "mounted" : "cannot open descriptors by name",
            reopened ? "" : "ranks open shared memory by /proc/PID/fd: mount -t proc proc /proc");
  if (memory >= 0) close(memory);

  int word = 0;
  bool futex = syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0) == 0;
  found.add(futex ? health::ok : health::missing, "futex", futex ? "works" : "refused",
            futex ? "" : "waiting ranks sleep on it: allow it in seccomp");
  long process = syscall(SYS_pidfd_open, getpid(), 0);
  found.add(
      process >= 0 ? health::ok : health::warning, "pidfd_open", process >= 0 ? "works" : "refused",
      process >= 0 ? "" : "with MPI, ranks may outlive a killed launcher: Linux 5.3 or later");
  if (process >= 0) close(static_cast<int>(process));
  return memory >= 0 && reopened && futex;
}

void examine_devices(findings& found) {
  found.section("Devices");
  std::string adapters;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", none))
    adapters += (adapters.empty() ? "" : ", ") + entry.path().filename().string();
  found.add(adapters.empty() ? health::missing : health::ok, "RDMA",
            adapters.empty() ? "no device" : adapters,
            adapters.empty() ? "between hosts MPI will use TCP; nothing to do on one host" : "");
  std::string gpu =
      first_line_of({"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"});
  found.add(gpu.empty() ? health::missing : health::ok, "GPU",
            gpu.empty() ? "none that nvidia-smi shows" : gpu);
  std::string compiler = find_in_path("nvcc");
  if (compiler.empty() && access("/usr/local/cuda/bin/nvcc", X_OK) == 0)
    compiler = "/usr/local/cuda/bin/nvcc";
  found.add(compiler.empty() ? health::missing : health::ok, "nvcc",
            compiler.empty() ? "not installed" : compiler,
            compiler.empty() ? "only for GPU memory: install the CUDA toolkit" : "");
  examine_nvshmem(found);
}

}  // namespace far::app
