#include "limits.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace far::app {

namespace {

/// Processes and threads of this user, as RLIMIT_NPROC counts them.
std::uint64_t own_tasks() {
  std::uint64_t n = 0;
  DIR* folder = opendir("/proc");
  while (dirent* entry = folder ? readdir(folder) : nullptr) {
    struct stat info;
    if (!parse_number(entry->d_name)) continue;
    std::string tasks = "/proc/" + std::string(entry->d_name) + "/task";
    if (stat(tasks.c_str(), &info) == 0 && info.st_uid == geteuid() && info.st_nlink > 2)
      n += info.st_nlink - 2;  // a folder for each, beside . and ..
  }
  if (folder) closedir(folder);
  return n;
}

/// Raises the soft limit to `wanted` or to the hard one. Returns how far it goes now.
rlim_t raise(__rlimit_resource what, rlim_t wanted) {
  rlimit limit{};
  if (getrlimit(what, &limit) != 0) return RLIM_INFINITY;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(limit.rlim_max, wanted);
    setrlimit(what, &limit);
    getrlimit(what, &limit);
  }
  return limit.rlim_cur;
}

}  // namespace

void make_room_for(const job_state& job) {
  rlim_t ranks = job.options.ranks;
  std::string these = "a job of " + counted(ranks, "rank") + " on " + name_of(job.how);

  // Measured: mpirun of Open MPI has 24 descriptors and 3 for each rank, the daemon of MPICH 9 and
  // 4, a rank of MPICH 22 and 2; a few more while they start.
  rlim_t least_files = 32 + 4 * ranks, files = raise(RLIMIT_NOFILE, 128 + 8 * ranks);
  if (job.one_host && files < least_files)
    throw error(failure, these + " needs at least " + std::to_string(least_files) +
                             " open files in one process, and the hard limit is " +
                             std::to_string(files) +
                             "; raise it (ulimit -H -n, or LimitNOFILE of the service), or start "
                             "fewer ranks");

  // The supervisor and the process of each rank; mpirun, MPICH's daemon, and two that we start.
  rlim_t least_tasks = 4 + 2 * ranks, used = geteuid() == 0 ? 0 : own_tasks();
  rlim_t tasks = raise(RLIMIT_NPROC, used + 16 + 6 * ranks);
  if (job.one_host && geteuid() != 0 && tasks < used + least_tasks)
    throw error(failure, these + " starts at least " + std::to_string(least_tasks) +
                             " processes, and the limit on processes of this user is " +
                             std::to_string(tasks) + ", of which " + std::to_string(used) +
                             " are taken; raise it (ulimit -u), start fewer ranks, or use the smp "
                             "back end");
}

}  // namespace far::app
