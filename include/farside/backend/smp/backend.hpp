// smp: the ranks of one machine over one memfd. `farside run` starts them as processes; with
// FARSIDE_THREADS=N the ranks are threads of one process (see far::run). A program started by
// hand is a job of one rank.
#pragma once

#include <farside/backend/shared/segment_size.hpp>
#include <farside/backend/shared/shared_memory.hpp>
#include <farside/backend/shared/started_alone.hpp>
#include <farside/backend/smp/request.hpp>
#include <farside/base/environment.hpp>
#include <farside/base/give_way.hpp>
#include <farside/base/job_board.hpp>

#include <fcntl.h>

#include <tuple>

namespace far::inline FARSIDE_BACKEND::detail::smp_backend {

/// The launcher's memory is zero only once: counters of the first runtime stay in it.
inline std::atomic<bool> segments_used{false};

/// The descriptor of the job's memory: the launcher's, or a fresh one.
inline int open_segments() {
  if (auto path = setting(job::segments_variable)) {
    if (segments_used.exchange(true))
      raise(
          "a second far::runtime was made after the first one had ended. The memory of a job is "
          "used once: keep one far::runtime for the whole program.");
    int fd = ::open(path->c_str(), O_RDWR | O_CLOEXEC);
    if (fd >= 0) return fd;
    raise("cannot open the job's shared memory ", *path, ": ", std::strerror(errno),
          ". It belongs to the launcher that started this program; start it again with "
          "'farside run -n N program'.");
  }
  int fd = memfd_create("farside", MFD_CLOEXEC);
  if (fd < 0)
    raise("memfd_create failed: ", std::strerror(errno), ". Farside needs Linux 3.17 or newer.");
  return fd;
}

/// A process that `farside run` has not started as one of several is a job of its own.
inline void refuse_to_be_alone() {
  refuse_separate_jobs(
      "smp", job::find_foreign_start(),
      "a program that is built for smp learns of its ranks from 'farside run' only",
      ", or build it for mpi");
}

/// What the ranks of one process share when they are threads.
struct thread_job {
  shared_memory memory;

  thread_job(rank_t nprocs, const start_options& options) {
    if (!setting(job::board_variable)) refuse_to_be_alone();
    int fd = open_segments();
    memory = shared_memory(fd, 0, nprocs, choose_segment(options, nprocs));
    ::close(fd);
  }
};

class backend : private shared_memory {
 public:
  using request = smp_backend::request;
  static constexpr const char* name = "smp";

  explicit backend(const start_options& options) {
    if (options.shared_job != nullptr) {
      shared_memory::operator=(
          static_cast<thread_job*>(options.shared_job)->memory.view(options.thread_rank));
      return;
    }
    auto nprocs =
        static_cast<rank_t>(integer_setting(job::nprocs_variable, 1, 1 << 19).value_or(1));
    auto rank = static_cast<rank_t>(integer_setting(job::rank_variable, 0, nprocs - 1).value_or(0));
    if (integer_setting(job::threads_variable, 1, 1 << 19).value_or(1) > 1)
      raise(
          "this program was started with its ranks as threads (FARSIDE_THREADS, or 'farside run "
          "--threads'), but it makes its far::runtime in main, which only one thread runs. "
          "Write main as 'return far::run(argc, argv, [] { ... });', or start it without "
          "--threads.");
    if (!setting(job::nprocs_variable)) refuse_to_be_alone();
    int fd = open_segments();
    shared_memory::operator=(shared_memory(fd, rank, nprocs, choose_segment(options, nprocs)));
    ::close(fd);
  }

  static constexpr bool coherent() { return true; }
  static constexpr bool async_progress() { return true; }
  static constexpr bool racy_get() { return true; }

  std::tuple<fixed_segments> fast_links() const { return {fixed()}; }
  mapped_segments segments() const { return *this; }

  using shared_memory::accumulate;
  using shared_memory::accumulates;
  using shared_memory::address;
  using shared_memory::atomic_load;
  using shared_memory::await;
  using shared_memory::compare_swap;
  using shared_memory::fetch_op;
  using shared_memory::flush;
  using shared_memory::get;
  using shared_memory::guarded_by_pages;
  using shared_memory::nprocs;
  using shared_memory::put;
  using shared_memory::rank;
  using shared_memory::segment_size;
  using shared_memory::signal;

  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    put(rank, offset, from, bytes);
    return {};
  }

  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    get(rank, offset, to, bytes);
    return {};
  }

  template <atomic_op Op, atomic_word T>
  request async_fetch_op(rank_t rank, std::size_t offset, T value, T& old) {
    old = fetch_op<Op>(rank, offset, value);
    return {};
  }

  template <atomic_word T>
  request async_compare_swap(rank_t rank, std::size_t offset, T expected, T desired, T& old) {
    old = compare_swap(rank, offset, expected, desired);
    return {};
  }

  void progress() {}
  void pause() { give_way(); }
  std::int64_t lost_rank() { return -1; }  // the launcher watches its children and ends the job
  void finish() {}
  [[noreturn]] void abort(const char*) { std::_Exit(1); }
};

}  // namespace far::inline FARSIDE_BACKEND::detail::smp_backend
