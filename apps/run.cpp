#include "run.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "job.hpp"
#include "option_values.hpp"
#include "privacy.hpp"
#include "relay.hpp"
#include "sim.hpp"
#include "watch.hpp"
#include "wrong_start.hpp"

namespace far::app {

ledger ledger::on(job_board::board* board) {
  ledger result;
  result.board = board;
  char* behind = reinterpret_cast<char*>(board) + job_board::board::bytes(board->slots);
  result.id = reinterpret_cast<std::uint64_t*>(behind);
  result.records = reinterpret_cast<record*>(behind + sizeof(std::uint64_t));
  return result;
}

ledger ledger::make(std::uint32_t ranks, std::uint64_t id, int& fd) {
  std::size_t size = bytes(ranks);
  fd = memfd_create("farside board", MFD_CLOEXEC);
  void* at = MAP_FAILED;
  if (fd >= 0 && ftruncate(fd, static_cast<off_t>(size)) == 0)
    at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED)
    throw error(failure, std::string("cannot make the memory shared with the ranks: ") +
                             std::strerror(errno));
  auto* board = static_cast<far::job_board::board*>(at);
  board->magic = far::job_board::board_magic;
  board->slots = ranks;
  ledger result = on(board);
  *result.id = id;
  return result;
}

void ledger::reaped(std::size_t slot, int wait_status) {
  records[slot].reaped_at = far::job_board::monotonic_ns();
  (*board)[slot].wait_status = static_cast<std::uint32_t>(wait_status);
  (*board)[slot].reaped.store(1, std::memory_order_release);
}

void ledger::lost(std::size_t slot) {
  records[slot].reaped_at = far::job_board::monotonic_ns();
  records[slot].lost = 1;
}

bool ledger::all_reaped() const {
  for (std::size_t i = 0; i < board->slots; ++i)
    if (!(*board)[i].reaped) return false;
  return true;
}

bool job_state::reaches_all() const {
  for (std::size_t i = 0; i < options.ranks; ++i)
    if (!(*book.board)[i].supervisor) return false;
  return true;
}

std::string path_of(pid_t owner, int fd) {
  return "/proc/" + std::to_string(owner) + "/fd/" + std::to_string(fd);
}

namespace {

void make_board(job_state& job) {
  std::uint64_t id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) id = far::job_board::monotonic_ns();
  job.book = ledger::make(job.options.ranks, id, job.board_fd);
}

/// Memory, descriptors and files of a job, whichever way it ended.
struct clean_up {
  job_state& job;
  ~clean_up() {
    if (job.book.board) munmap(job.book.board, ledger::bytes(job.options.ranks));
    for (int fd : {job.board_fd, job.segments_fd, job.out[1], job.err[1]})
      if (fd >= 0) close(fd);
    std::error_code ignored;
    if (!job.scratch.empty()) remove_listed_files(job.scratch);
    if (!job.scratch.empty()) std::filesystem::remove_all(job.scratch, ignored);
  }
};

/// What fits the back end and what does not.
void check(const job_state& job) {
  const run_options& options = job.options;
  std::string built = "'" + options.command[0] + "' is started as " + name_of(job.how);
  if (options.threads && job.how != transport::smp)
    throw error(usage_error,
                "--threads: ranks can be threads of one process on the smp back end only, and " +
                    built + "; build it for smp, or leave --threads out");
  if (options.threads && options.bind == binding::core)
    throw error(
        usage_error,
        "--bind core binds processes, and with --threads there is one only; leave one of them out");
  if (options.threads && options.prefix)
    throw error(usage_error,
                "--prefix tells processes apart, and with --threads there is one only; leave one "
                "of them out");
  if (job.how == transport::sim && (options.prefix || options.bind == binding::core))
    throw error(usage_error, (options.prefix ? "--prefix" : "--bind core") +
                                 (": that is for ranks that are processes, and " + built) +
                                 ", where all of them are in one; leave it out");
  bool here = job.how == transport::smp || job.how == transport::sim;
  if (here && !options.hosts.empty())
    throw error(usage_error, "--hosts: " + built +
                                 ", whose ranks share the memory of one host; build it for mpi or "
                                 "shmem, or leave --hosts out");
  if (here && !options.mpirun.empty())
    throw error(usage_error, "--mpirun-arg: " + built + ", which uses no mpirun; leave it out");
}

}  // namespace

void set_up_environment(const variables& environment) {
  for (const char* name :
       {far::job_board::board_variable, far::job_board::slot_variable,
        far::job_board::segments_variable, far::job_board::rank_variable,
        far::job_board::nprocs_variable, far::job_board::threads_variable,
        far::job_board::carrier_variable, reach::variable, "FARSIDE_GUARD", "FARSIDE_GUARD_LIST"})
    unsetenv(name);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
}

void set_carrier(transport how) {
  std::string path = carrier_of(how);
  if (path.empty()) return;
  setenv(far::job_board::carrier_variable, path.c_str(), 1);
  if (how != transport::sim) return;
  // Its clock is for the whole program.
  const char* others = getenv("LD_PRELOAD");
  setenv("LD_PRELOAD", (path + (others ? " " + std::string(others) : "")).c_str(), 1);
}

void open_standard_streams() {
  // Files must not take their places. A closed descriptor is opened the wrong way round, so that
  // a program that reads standard input, or writes to standard output, gets an error.
  constexpr int how[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how[fd]) < 0) return;
}

int run_job(run_options options) {
  job_state job;
  job.launcher = getpid();
  job.options = std::move(options);
  job.program = locate_program(job.options.command[0]);
  job.how = job.options.backend.empty() ? transport_of(job.program)
                                        : transport_named(job.options.backend, job.program);
  if (!job.options.backend.empty()) refuse_wrong_backend(job.program, job.options.backend, job.how);
  if (job.how == transport::any) job.how = transport::smp;
  refuse_several_launchers("run", job.options.ranks);
  check(job);
  set_up_environment(job.options.environment);
  if (takes_any(job.program)) set_carrier(job.how);
  if (job.how == transport::sim) return run_simulated(job.options, job.program);
  if (job.how != transport::smp && job.how != transport::shmem)
    job.servers = add_servers(job.options);
  clean_up at_end{job};
  make_board(job);
  if (job.options.verbose && !job.supervised())
    std::fprintf(stderr, "farside run: %s as %s of %s, on smp\n",
                 quoted(job.options.command).c_str(),
                 (job.options.threads      ? counted(job.options.ranks, "thread")
                  : job.options.ranks == 1 ? "1 process"
                                           : std::to_string(job.options.ranks) + " processes")
                     .c_str(),
                 job.program.c_str());
  watcher watch(job);
  relays lines;
  job.supervised() ? start_mpi(job, lines) : start_smp(job, lines);
  return watch.watch(lines);
}

int run_command(const arguments& words) {
  if (asks_for_help(words)) {
    std::fputs(run_usage, stdout);
    return success;
  }
  return run_job(parse_run(words));
}

}  // namespace far::app
