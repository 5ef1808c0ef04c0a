// Starting the ranks of an MPI or OpenSHMEM program: by that library's own mpirun, with a
// supervisor of ours between it and each rank.

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "host_name.hpp"
#include "job.hpp"
#include "limits.hpp"
#include "machine.hpp"
#include "privacy.hpp"
#include "relay.hpp"

namespace far::app {

namespace {

struct family {
  const char* name;
  arguments candidates;  ///< programs that may start its jobs, the surest name first
  arguments signs;       ///< one of these is in what --version prints
  const char* package;
};

family family_of(transport how) {
  switch (how) {
    case transport::mpich:
      return {"MPICH",
              {"mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"},
              {"HYDRA", "MPICH", "mpich"},
              "mpich"};
    case transport::shmem:
      return {"OpenSHMEM", {"oshrun", "shmemrun"}, {""}, "openmpi-bin liboshmem-dev"};
    case transport::other_mpi:
      return {"MPI", {"mpiexec", "mpirun"}, {""}, "openmpi-bin"};
    default:
      return {"Open MPI",
              {"mpirun.openmpi", "mpirun", "mpiexec"},
              {"Open MPI", "OpenRTE", "open-mpi"},
              "openmpi-bin"};
  }
}

std::string find_starter(transport how) {
  family mpi = family_of(how);
  std::string others;
  for (const std::string& name : mpi.candidates) {
    std::string path = find_in_path(name);
    if (path.empty()) continue;
    captured asked = mpi.signs[0].empty() ? captured{} : capture({path, "--version"}, 30);
    if (!mpi.signs[0].empty() && !asked.ended)
      throw error(failure, path + " --version could not be started, or did not end within 30 s: " +
                               "the machine is very busy, or at a limit on processes (ulimit -u)");
    const std::string& version = asked.text;
    for (const std::string& sign : mpi.signs)
      if (version.find(sign) != std::string::npos) return path;
    others += (others.empty() ? "" : ", ") + path;
  }
  throw error(not_found, "the program was built for " + std::string(mpi.name) + ", but no " +
                             mpi.candidates[0] + " is installed" +
                             (others.empty() ? "" : " (" + others + " is of another MPI)") +
                             "; apt-get install " + mpi.package);
}

/// The command line of mpirun, with the reason for each part.
class command_line {
 public:
  void add(arguments words, std::string why) {
    notes_.row({quoted(words), std::move(why)});
    words_.insert(words_.end(), words.begin(), words.end());
  }
  /// What is set in the environment.
  void note(const std::string& setting, std::string why) { notes_.row({setting, std::move(why)}); }
  const arguments& words() const { return words_; }
  std::string explained() const { return notes_.text("    "); }

 private:
  arguments words_;
  table notes_;
};

bool mentions(const arguments& words, const char* part) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return word.find(part) != std::string::npos; });
}

/// Whether all ranks run here. If not, folders made here would be missing on the other hosts.
bool one_host(const run_options& options) {
  for (const char* name : {"SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS", "PE_HOSTFILE",
                           "OMPI_MCA_orte_default_hostfile", "HYDRA_HOST_FILE"})
    if (getenv(name)) return false;
  return options.hosts.empty() && !mentions(options.mpirun, "host") &&
         !mentions(options.mpirun, "machinefile") &&
         std::find(options.mpirun.begin(), options.mpirun.end(), "-f") == options.mpirun.end() &&
         std::find(options.mpirun.begin(), options.mpirun.end(), "-H") == options.mpirun.end();
}

/// Removes the scratch folder if the launcher cannot, as it was killed: then its end of a pipe
/// closes. No signal that ends a job by a terminal or by mpirun may end this process first.
void start_janitor(const job_state& job) {
  int alive[2];
  if (pipe2(alive, O_CLOEXEC) != 0) return;
  pid_t janitor = fork();
  if (janitor == 0) {
    setsid();
    dup2(alive[0], 0);
    close_range(1, ~0u, 0);  // the reader of our output shall see its end
    char none;
    while (read(0, &none, 1) < 0) continue;
    std::error_code ignored;
    remove_listed_files(job.scratch);
    for (int round = 0; round < 20 && std::filesystem::exists(job.scratch, ignored); ++round) {
      std::filesystem::remove_all(job.scratch, ignored);
      usleep(100'000);  // ranks that are dying may still add to it
    }
    _exit(0);
  }
  close(alive[0]);  // the other end closes when we die, and is open in no program that we start
}

/// A killed rank cannot remove its files, and MPIs keep theirs in /dev/shm: they get a folder
/// that we remove.
void make_scratch(job_state& job) {
  struct stat info;
  bool shm = stat("/dev/shm", &info) == 0 && access("/dev/shm", W_OK) == 0;
  const char* temporary = getenv("TMPDIR");
  std::string path = std::string(shm         ? "/dev/shm"
                                 : temporary ? temporary
                                             : "/tmp") +
                     "/farside." + std::to_string(job.launcher) + ".XXXXXX";
  if (!mkdtemp(path.data())) return;
  job.scratch = path;
  start_janitor(job);
}

/// The symmetric heap holds the segment and what OpenSHMEM itself puts there.
void size_symmetric_heap(const job_state& job, arguments& exported) {
  const char* variables[] = {"SHMEM_SYMMETRIC_HEAP_SIZE",
                             "SHMEM_SYMMETRIC_SIZE"};  // Open MPI 4 reads the first
  for (const char* name : variables)
    if (getenv(name)) return;
  const char* asked = getenv("FARSIDE_SEGMENT");
  std::uint64_t size = 0;
  if (auto segment = parse_size(asked ? asked : ""))
    size = *segment + (std::uint64_t{64} << 20);
  else
    size = std::min(std::uint64_t{1} << 30, measure_memory().available / 2 / job.options.ranks) &
           ~std::uint64_t{0xfffff};
  for (const char* name : variables) {
    setenv(name, std::to_string(size).c_str(), 1);
    exported.push_back(name);
  }
}

std::string why_so_many(const job_state& job) {
  if (job.servers == 0) return "as asked";
  return "as asked, and " + counted(job.servers, "progress rank") + " (FARSIDE_MPI=progress_rank)";
}

bool spawns_servers() {
  const char* strategy = getenv("FARSIDE_MPI");
  return strategy && std::strcmp(strategy, "spawned") == 0;
}

/// Nothing of a job on one host listens where others could connect: a stray connection would hang
/// it.
void keep_openmpi_here(const run_options& options, command_line& line) {
  if (!has_loopback()) return;
  if (!getenv("OMPI_MCA_oob_tcp_if_include") && !mentions(options.mpirun, "oob_tcp"))
    line.add({"--mca", "oob_tcp_if_include", "lo"}, "mpirun can be reached from this host only");
  if (getenv("OMPI_MCA_btl") || mentions(options.mpirun, "btl")) return;
  if (!spawns_servers()) {
    line.add({"--mca", "btl", "self,vader"}, "ranks of one host need no TCP, and do not listen");
    return;
  }
  // Shared memory (vader) is for processes that mpirun has started at one time.
  line.add({"--mca", "btl", "self,vader,tcp"}, "servers of FARSIDE_MPI=spawned need TCP");
  line.add({"--mca", "btl_tcp_if_include", "lo"}, "on this host only");
}

std::uint32_t number_in(const char* variable, std::uint32_t otherwise) {
  const char* value = getenv(variable);
  auto number = parse_number(value ? value : "");
  return number ? static_cast<std::uint32_t>(std::min<std::uint64_t>(*number, most_ranks))
                : otherwise;
}

void add_openmpi(const job_state& job, command_line& line, arguments exported) {
  const run_options& options = job.options;
  line.add({"-n", std::to_string(options.ranks)}, why_so_many(job));
  if (geteuid() == 0)
    line.add({"--allow-run-as-root"}, "you are root, which Open MPI refuses otherwise");
  line.add({"--oversubscribe"}, "more ranks than cores are allowed");
  if (options.bind == binding::core)
    line.add({"--bind-to", "core:overload-allowed"}, "--bind core");
  else
    line.add({"--bind-to", "none"},
             "ranks go where there is room; Open MPI may put all of them on core 0");
  if (!options.hosts.empty()) {
    line.add({"--host", list_of(options.hosts)}, "--hosts, and how many ranks go to each");
    line.add({"--map-by", "slot"}, "ranks fill one host after the other");
  }
  if (!options.agent.empty()) line.add({"--mca", "plm_rsh_agent", options.agent}, "--agent");
  if (!options.verbose && (job.one_host || !options.hosts.empty()))
    line.add({"-q"}, "we name the rank that died in one line, in place of its banners");
  if (!getenv("OMPI_MCA_osc") && !mentions(options.mpirun, "osc"))
    line.add({"--mca", "osc", "^rdma"},
             "compare-and-swap crashes in its osc/rdma component (seen in 4.1.4)");
  if (job.how == transport::shmem && !getenv("OMPI_MCA_memory") &&
      !mentions(options.mpirun, "patcher"))
    line.add({"--mca", "memory", "^patcher"},
             "shmem_finalize crashes with memory/patcher (seen in 4.1.4)");
  if (job.one_host) keep_openmpi_here(options, line);
  line.add({"--mca", "btl_base_warn_component_unused", "0"},
           "no warning where there is no fast network");
  if (!job.scratch.empty()) {
    line.add({"--mca", "btl_vader_backing_directory", job.scratch},
             "files that a killed rank leaves are removed");
    line.add({"--mca", "osc_sm_backing_directory", job.scratch}, "the same for windows");
    if (job.one_host)
      line.add({"--mca", "orte_tmpdir_base", job.scratch}, "the same for mpirun's own");
  }
  for (const std::string& name : exported)
    line.add({"-x", name}, "reaches ranks on other hosts too");
}

void add_mpich(const job_state& job, command_line& line) {
  line.add({"-n", std::to_string(job.options.ranks)}, why_so_many(job));
  if (!job.options.hosts.empty())
    line.add({"-hosts", list_of(job.options.hosts)}, "--hosts, and how many ranks go to each");
  if (!job.options.agent.empty())
    line.add({"-launcher", "ssh", "-launcher-exec", job.options.agent}, "--agent");
  if (job.one_host && has_loopback() && !mentions(job.options.mpirun, "iface"))
    line.add({"-iface", "lo"}, "mpiexec can be reached from this host only");
  // mpiexec starts its daemons by srun, which waits for the end of the step that holds the cores:
  // this one.
  if (getenv("SLURM_STEP_ID") && job.options.hosts.empty()) {
    if (number_in("SLURM_JOB_NUM_NODES", 0) == 1)
      line.add({"-launcher", "fork", "-rmk", "user"}, "in a step of srun, on one node");
    else
      setenv("SLURM_OVERLAP", "1", 1);
  }
  if (job.options.bind != binding::unsaid)
    line.add({"-bind-to", job.options.bind == binding::core ? "core" : "none"}, "--bind");
  if (!job.scratch.empty() && !getenv("UCX_POSIX_DIR"))
    setenv("UCX_POSIX_DIR", job.scratch.c_str(), 1);
}

/// What mpirun has to hand on: everything of ours, and what --env names.
arguments exported_names(const run_options& options) {
  arguments names;
  for (char** entry = environ; *entry; ++entry) {
    std::string variable = *entry;
    if (variable.starts_with("FARSIDE_")) names.push_back(variable.substr(0, variable.find('=')));
  }
  for (const auto& [name, value] : options.environment)
    if (!name.starts_with("FARSIDE_")) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

/// Start-up takes 0.2 s, and seconds where names of hosts are looked up in vain. hwloc, which all
/// MPIs use, looks for ten X displays of localhost (its component gl); MPICH's mpiexec looks up the
/// name of this host, whatever it is told of hosts and interfaces. Returns words for supervisors.
arguments avoid_lookups(const job_state& job, command_line& line) {
  if (!getenv("HWLOC_COMPONENTS")) {
    setenv("HWLOC_COMPONENTS", "-gl", 1);
    line.note("HWLOC_COMPONENTS=-gl", "hwloc looks for no X displays: each may be a slow look-up");
  }
  if (!job.one_host) return {};
  std::string former = ask_no_name_server();
  line.note("RES_OPTIONS=attempts:0",
            "mpirun asks no name server, as all ranks are here; the ranks may");
  return {"--resolver=" + former};
}

void add_supervisor(job_state& job, relays& lines, command_line& line,
                    const arguments& more_words) {
  char id[17];
  std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(*job.book.id));
  arguments words = {self_path(),  "__rank",
                     "--job",      id,
                     "--launcher", std::to_string(job.launcher),
                     "--ranks",    std::to_string(job.options.ranks)};
  words.insert(words.end(), more_words.begin(), more_words.end());
  if (job.leave_together()) words.push_back("--together");
  if (job.one_host) words.push_back("--one-host");
  if (const char* folder = getenv("TMPDIR"); folder && !job.one_host)
    words.insert(words.end(), {"--tmpdir", folder});
  if (!job.one_host && !job.scratch.empty()) words.insert(words.end(), {"--scratch", job.scratch});
  if (job.options.prefix) {
    // Lines that pass through mpirun are cut every 4 KiB and mixed: local ranks go around it.
    if (pipe2(job.out, O_CLOEXEC) != 0 || pipe2(job.err, O_CLOEXEC) != 0)
      throw error(failure, std::string("cannot make a pipe for --prefix: ") + std::strerror(errno));
    lines.add(relay(job.out[0], 1, "", false));
    lines.add(relay(job.err[0], 2, "", false));
    words.insert(words.end(), {"--prefix", path_of(job.launcher, job.out[1]),
                               path_of(job.launcher, job.err[1])});
  }
  words.push_back("--");
  line.add(words, "our supervisor: it notices how the rank ends");
  arguments program = job.options.command;
  program[0] = job.program;
  line.add(program, "the program");
}

}  // namespace

std::uint32_t add_servers(run_options& options) {
  const char* strategy = getenv("FARSIDE_MPI");
  if (!strategy || std::strcmp(strategy, "progress_rank") != 0) return 0;
  std::uint32_t of_a_host = number_in("FARSIDE_MPI_PROGRESS_RANKS", 1), added = 0;
  // Servers of `ranks` ranks on one host, which for tests may be taken for several nodes.
  std::uint32_t node = number_in("FARSIDE_MPI_NODE_RANKS", 0);
  auto servers_of = [&](std::uint32_t ranks) {
    std::uint32_t left = node > of_a_host ? node - of_a_host : ranks;  // ranks of a node
    return (ranks + left - 1) / left * of_a_host;
  };
  if (options.hosts.empty() && one_host(options)) added = servers_of(options.ranks);
  for (host& h : options.hosts) {
    std::uint32_t servers = servers_of(h.ranks);
    h.ranks += servers;
    added += servers;
  }
  options.ranks += added;
  return added;
}

void start_mpi(job_state& job, relays& lines) {
  command_line line;
  job.one_host = one_host(job.options);
  make_room_for(job);
  std::string starter = find_starter(job.how);
  job.starter_name = starter.substr(starter.rfind('/') + 1);
  line.add({starter}, "the program is built for " + std::string(name_of(job.how)));
  make_scratch(job);
  if (!job.one_host)
    if (std::string where = job.remote.open(*job.book.id, job.options.ranks); !where.empty())
      setenv(reach::variable, where.c_str(), 1);

  setenv(far::job_board::board_variable, path_of(job.launcher, job.board_fd).c_str(), 1);
  arguments exported = exported_names(job.options);
  if (job.how == transport::shmem) size_symmetric_heap(job, exported);
  if (job.how == transport::openmpi || job.how == transport::shmem)
    add_openmpi(job, line, exported);
  else
    add_mpich(job, line);
  let_hangups_end_ranks();
  std::string ucx = job.one_host ? keep_ucx_off_networks() : "";
  for (const std::string& word : job.options.mpirun) line.add({word}, "--mpirun-arg");
  add_supervisor(job, lines, line, avoid_lookups(job, line));
  if (job.options.verbose)
    std::fprintf(
        stderr, "farside run: %s\n%s", quoted(line.words()).c_str(),
        (line.explained() +
         (ucx.empty() ? "" : "    with " + ucx + " set: ranks of one host need no network\n"))
            .c_str());

  int output = job.output.start();
  job.starter = fork();
  if (job.starter == 0) {
    become_child(job.launcher);
    dup2(output, 1);
    if (!job.one_host && !job.scratch.empty() && job.how != transport::mpich)
      setenv("TMPDIR", job.scratch.c_str(), 1);  // for mpirun; supervisors set it back
    // Open MPI's shmem_init crashes now and then where ranks have different addresses (seen
    // in 4.1.6)
    if (job.how == transport::shmem) fix_addresses();
    if (job.how == transport::mpich && !job.scratch.empty())
      setenv("FARSIDE_GUARD_LIST", guard_list(job.scratch).c_str(), 1);
    if (job.one_host && has_loopback())
      preload_guard(spawns_servers() ? guarded::servers : guarded::starter);
    signal(SIGQUIT, SIG_IGN);  // Ctrl-\ asks us what the ranks wait for; mpirun shall survive it
    execute(starter, line.words());
    std::fprintf(stderr, "farside run: cannot start %s: %s\n", starter.c_str(),
                 std::strerror(errno));
    _exit(not_executable);
  }
  job.output.close_input();
  if (job.starter < 0)
    throw error(failure, "cannot start " + starter + ": " + std::strerror(errno));
}

}  // namespace far::app
