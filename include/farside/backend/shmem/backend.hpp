// shmem: OpenSHMEM 1.4 as Open MPI has it, on one machine or many. The segment is one block of the
// symmetric heap.
#pragma once

#include <farside/backend/optional.hpp>
#include <farside/backend/shared/communication_library.hpp>
#include <farside/backend/shared/shared_memory.hpp>
#include <farside/backend/shared/started_alone.hpp>
#include <farside/backend/shmem/fast_link.hpp>
#include <farside/backend/shmem/startup.hpp>
#include <farside/base/job_board.hpp>

#include <dlfcn.h>
#include <shmem.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::shmem_backend {

class backend : public heap_operations {
 public:
  static constexpr const char* name = "shmem";

  explicit backend(const start_options& options);
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;

  static constexpr bool coherent() { return false; }
  /// Between machines UCX's software atomics, puts and gets wait for the target to call in.
  bool async_progress() const { return one_machine_; }
  /// Between machines a long put arrives in pieces that may split a word.
  bool racy_get() const { return one_machine_; }

  std::tuple<heap_link> fast_links() { return {heap_link(*this)}; }

  bool await(std::size_t offset, std::uint64_t count);
  std::int64_t lost_rank();

  void finish() {
    shmem_free(base_);
    job::keep_libraries_loaded();
    shmem_finalize();
    process_life() = life::finished;
  }

  [[noreturn]] void abort(const char*) {
    shmem_global_exit(1);
    std::_Exit(1);
  }

 private:
  void start(thread_level threads);
  void meet_the_others(std::size_t segment);
  void allocate();

  int spins_ = 0;
  struct neighbour {
    rank_t rank;
    pid_t pid;
  };
  std::vector<neighbour> neighbours_;  // ranks whose processes this one can see
  std::mutex watching_;
  std::uint64_t watched_at_ = 0;
  std::atomic<std::int64_t> lost_ = -1;
};

inline backend::backend(const start_options& options) {
  if (process_life() != life::unborn)
    raise(
        "a second far::runtime was made in one process. OpenSHMEM cannot be started again after "
        "it ended: make one far::runtime in main and keep it until main returns.");
  std::size_t segment = prepare_heap(options);
  process_life() = life::running;
  setenv("OMPI_MCA_memory", "^patcher", 0);
  job::look_for_no_displays();
  start(options.threads);
  meet_the_others(segment);
  allocate();
  auto next = std::ranges::find_if(neighbours_, [this](auto n) { return n.rank > rank_; });
  if (next == neighbours_.end()) next = neighbours_.begin();
  try_bitwise(next != neighbours_.end() ? next->rank : rank_);
}

inline void backend::start(thread_level threads) {
  traffic_.threads = threads == thread_level::multiple;
  auto before = job::find_foreign_start();
  auto refuse_to_be_alone = [&] {
    refuse_separate_jobs(
        "shmem", before,
        "OpenSHMEM is told of none of them, so that launcher and this OpenSHMEM "
        "do not know each other",
        ", with oshrun, or with 'srun --mpi=pmix setarch -R PROGRAM' where Slurm has it");
  };
  auto hidden = std::make_unique<job::step_without_pmix>();
  if (*hidden && before) refuse_to_be_alone();
  int level = traffic_.threads ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, provided = level;
  if (shmem_init_thread(level, &provided) != 0 || provided < level)
    raise("OpenSHMEM gave thread level ", provided, " where ", level,
          " was asked. This OpenSHMEM cannot serve several threads of a rank: use "
          "far::thread_level::single, or the smp or mpi back end.");
  make_heap_private();
  on_exit(leave_at_once, nullptr);  // runs before what shmem_init has registered
  rank_ = static_cast<rank_t>(shmem_my_pe());
  nprocs_ = static_cast<rank_t>(shmem_n_pes());
  hidden.reset();
  if (nprocs_ == 1) refuse_to_be_alone();
  spins_ = nprocs_ <= usable_cores() ? 2000 : 0;
  // OpenSHMEM has no call that only makes progress, and shmem_test of Open MPI makes none.
  opal_progress_ = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "opal_progress"));
}

/// Agrees on the smallest segment, and learns which ranks are on this machine.
inline void backend::meet_the_others(std::size_t segment) {
  auto* card = static_cast<introduction*>(shmem_malloc(sizeof(introduction)));
  if (card == nullptr)
    raise<allocation_error>("OpenSHMEM's symmetric heap is full before the runtime started.");
  struct stat pids = {};
  stat("/proc/self/ns/pid", &pids);
  *card = {segment, static_cast<std::uint64_t>(getpid()), pids.st_ino};
  shmem_barrier_all();
  segment_ = segment;
  for (rank_t other = 0; other < nprocs_; ++other) {
    introduction theirs;
    shmem_getmem(&theirs, card, sizeof theirs, static_cast<int>(other));
    segment_ = std::min(segment_, static_cast<std::size_t>(theirs.segment));
    bool near = shmem_ptr(card, static_cast<int>(other)) != nullptr;
    one_machine_ = one_machine_ && near;
    auto pid = static_cast<pid_t>(theirs.pid);
    if (near && other != rank_ && theirs.pid_namespace == pids.st_ino && kill(pid, 0) == 0)
      neighbours_.push_back({other, pid});
  }
  shmem_free(card);
}

inline void backend::allocate() {
  auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  base_ = static_cast<char*>(shmem_align(page, segment_));
  if (base_ == nullptr)
    raise<allocation_error>("OpenSHMEM has no room for a segment of ", segment_, " bytes (",
                            human_size(static_cast<double>(segment_)), ") in a symmetric heap of ",
                            setting(heap_variable).value_or("unknown size"),
                            " bytes. Ask for less by FARSIDE_SEGMENT, or give the heap more by ",
                            heap_variable, ".");
  // Fresh memory is zero; what was used and freed since is not, and is resident. shmem_calloc
  // would touch, and so commit, all of it.
  std::vector<unsigned char> resident((segment_ + page - 1) / page);
  bool known = mincore(base_, segment_, resident.data()) == 0;
  for (std::size_t i = 0; i < resident.size(); ++i)
    if (!known || (resident[i] & 1) != 0)
      std::memset(base_ + i * page, 0, std::min(page, segment_ - i * page));
  shmem_barrier_all();
}

/// Spins where each rank has a core, then yields, then sleeps ever longer, up to 1 ms, so that
/// waiting ranks do not take the cores from the one they wait for.
inline bool backend::await(std::size_t offset, std::uint64_t count) {
  auto arrived = [&, word = at<unsigned long>(offset)] {
    if (!shmem_ulong_test(word, SHMEM_CMP_GE, 2 * count)) return false;
    acquire_fence();
    return true;
  };
  for (int i = 0; i < spins_; ++i) {
    if (arrived()) return true;
    relax();
  }
  for (int i = 0; i < 200; ++i) {
    if (arrived()) return true;
    pause();
  }
  for (long nap = 20'000; nap < 1'000'000; nap += nap / 8) {  // about 9 ms in all
    if (arrived()) return true;
    progress();
    timespec time{0, nap};
    nanosleep(&time, nullptr);
  }
  return arrived();
}

/// Looks twice a second. A rank that ended in good order is not taken for a lost one:
/// shmem_finalize begins with a barrier, so nobody's process is gone while another may still ask.
inline std::int64_t backend::lost_rank() {
  std::unique_lock alone(watching_, std::try_to_lock);
  std::uint64_t now = job::monotonic_ns();
  if (alone && now - watched_at_ >= 500'000'000) {
    watched_at_ = now;
    for (auto [rank, pid] : neighbours_)
      if (kill(pid, 0) != 0 && errno == ESRCH) lost_.store(rank, std::memory_order_relaxed);
  }
  return lost_.load(std::memory_order_relaxed);
}

}  // namespace far::inline FARSIDE_BACKEND::detail::shmem_backend
