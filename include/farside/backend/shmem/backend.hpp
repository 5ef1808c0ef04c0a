// shmem: OpenSHMEM 1.4 as Open MPI has it, on one machine or many. The segment is one block of the
// symmetric heap.
//
// Memory order. Between ranks of one machine UCX copies and does CPU atomics itself, without the
// fences that a contract of ours needs: a flush ends in a full fence, a get in an acquire fence
// (see backend/shared/shared_memory.hpp for why). UCX's atomics are full fences.
#pragma once

#include <farside/backend/concept.hpp>
#include <farside/backend/shared/add_in_place.hpp>
#include <farside/backend/shared/communication_library.hpp>
#include <farside/backend/shared/fetch_by_swaps.hpp>
#include <farside/backend/shared/shared_memory.hpp>
#include <farside/backend/shared/started_alone.hpp>
#include <farside/backend/shmem/request.hpp>
#include <farside/backend/shmem/startup.hpp>
#include <farside/base/job_board.hpp>

#include <dlfcn.h>
#include <shmem.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::shmem_backend {

class quick_link;

class backend {
 public:
  using request = shmem_backend::request;
  using far_view = quick_link;
  static constexpr const char* name = "shmem";

  explicit backend(const start_options& options);
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;

  static constexpr bool coherent() { return false; }
  /// Between machines UCX's software atomics, puts and gets wait for the target to call in.
  bool async_progress() const { return one_machine_; }
  /// Between machines a long put arrives in pieces that may split a word.
  bool racy_get() const { return one_machine_; }

  rank_t rank() const { return rank_; }
  rank_t nprocs() const { return nprocs_; }
  std::size_t segment_size() const { return segment_; }
  quick_link quick_far_view();

  /// Only this rank's own memory: where shmem_ptr reaches others', a CPU's accesses and OpenSHMEM's
  /// need not agree.
  void* address(rank_t rank, std::size_t offset) const {
    return rank == rank_ ? base_ + offset : nullptr;
  }

  void put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (skewed(from, offset, bytes)) [[unlikely]]
      return put_skewed(rank, offset, static_cast<const std::byte*>(from), bytes);
    shmem_putmem(base_ + offset, from, bytes, static_cast<int>(rank));
    traffic_.puts.begin(traffic_.threads);
  }

  void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    finish_puts();
    serve_before_own(rank);
    if (skewed(to, offset, bytes)) [[unlikely]]
      get_skewed(rank, offset, static_cast<std::byte*>(to), bytes);
    else
      shmem_getmem(to, base_ + offset, bytes, static_cast<int>(rank));
    acquire_fence();
  }

  request async_put(rank_t rank, std::size_t offset, const void* from, std::size_t bytes) {
    if (skewed(from, offset, bytes)) [[unlikely]] {
      put(rank, offset, from, bytes);
      return {};
    }
    shmem_putmem_nbi(base_ + offset, from, bytes, static_cast<int>(rank));
    return {traffic_, traffic_.puts, traffic_.puts.begin(traffic_.threads)};
  }

  request async_get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (skewed(to, offset, bytes)) [[unlikely]] {
      get(rank, offset, to, bytes);
      return {};
    }
    finish_puts();
    shmem_getmem_nbi(to, base_ + offset, bytes, static_cast<int>(rank));
    return {traffic_, traffic_.gets, traffic_.gets.begin(traffic_.threads)};
  }

  /// OpenSHMEM adds integers only. Like puts, they are complete after a quiet.
  template <component C>
  static constexpr bool accumulates() {
    return std::integral<C>;
  }
  template <std::unsigned_integral C>
  void accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
    int pe = static_cast<int>(rank);
    for (std::size_t i = 0; i < n; ++i, offset += sizeof(C))
      if constexpr (sizeof(C) == 8)
        shmem_ulong_atomic_add(at<unsigned long>(offset), from[i], pe);
      else
        shmem_uint_atomic_add(at<unsigned>(offset), from[i], pe);
    traffic_.puts.begin(traffic_.threads);
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value);

  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired);

  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    serve_before_own(rank);
    int pe = static_cast<int>(rank);
    if constexpr (sizeof(T) == 8)
      return static_cast<T>(shmem_ulong_atomic_fetch(at<unsigned long>(offset), pe));
    else
      return static_cast<T>(shmem_uint_atomic_fetch(at<unsigned>(offset), pe));
  }

  // OpenSHMEM has no atomics that return before they are done until 1.5.
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

  void flush(rank_t) { flush(); }
  void flush() {
    finish_puts();
    serve_before_own(rank_);  // who only flushes, and loads its own memory, waits for others, too
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  /// Counts in steps of two, as all back ends do; bit 0 is not used here.
  void signal(rank_t rank, std::size_t offset) {
    shmem_ulong_atomic_add(at<unsigned long>(offset), 2, static_cast<int>(rank));
  }

  bool await(std::size_t offset, std::uint64_t count);

  void progress() {
    if (opal_progress_ != nullptr) opal_progress_();
  }
  void pause() {
    progress();
    sched_yield();
  }

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
  friend quick_link;

  /// Whole words of the segment from or to a private buffer that is not aligned as they are: the
  /// library would copy such a block by accesses that cut the words in two (`racy_get`).
  static bool skewed(const void* buffer, std::size_t offset, std::size_t bytes) {
    return (reinterpret_cast<std::uintptr_t>(buffer) & 7) != 0 && ((offset | bytes) & 7) == 0;
  }

  static constexpr std::size_t bounce_bytes = 4096;

  [[gnu::noinline]] void put_skewed(rank_t rank, std::size_t offset, const std::byte* from,
                                    std::size_t bytes) {
    alignas(64) std::byte bounce[bounce_bytes];
    for (std::size_t n; bytes != 0; offset += n, from += n, bytes -= n) {
      n = std::min(bytes, bounce_bytes);
      std::memcpy(bounce, from, n);
      shmem_putmem(base_ + offset, bounce, n, static_cast<int>(rank));
    }
    traffic_.puts.begin(traffic_.threads);
  }

  [[gnu::noinline]] void get_skewed(rank_t rank, std::size_t offset, std::byte* to,
                                    std::size_t bytes) {
    alignas(64) std::byte bounce[bounce_bytes];
    for (std::size_t n; bytes != 0; offset += n, to += n, bytes -= n) {
      n = std::min(bytes, bounce_bytes);
      shmem_getmem(bounce, base_ + offset, n, static_cast<int>(rank));
      std::memcpy(to, bounce, n);
    }
  }

  /// A rank that polls a word of its own keeps others from changing it over a network, unless it
  /// serves them in between.
  void serve_before_own(rank_t rank) {
    if (!one_machine_ && rank == rank_) [[unlikely]]  // whose it is nobody can predict
      progress();
  }

  template <class T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(base_ + offset);
  }

  void finish_puts() {
    if (!traffic_.puts.all_finished(traffic_.threads)) traffic_.quiet();
  }

  void start(thread_level threads);
  void meet_the_others(std::size_t segment);
  void allocate();
  void try_bitwise();

  char* base_ = nullptr;
  rank_t rank_ = 0;
  rank_t nprocs_ = 1;
  bool one_machine_ = true;
  bool bitwise_works_ = true;
  int spins_ = 0;
  std::size_t segment_ = 0;
  traffic traffic_;
  void (*opal_progress_)() = nullptr;

  struct neighbour {
    rank_t rank;
    pid_t pid;
  };
  std::vector<neighbour> neighbours_;  // ranks whose processes this one can see
  std::mutex watching_;
  std::uint64_t watched_at_ = 0;
  std::atomic<std::int64_t> lost_ = -1;
};

/// A backend as a thread has it at hand, in jobs with one thread a rank. Behind the fence of a get
/// all loads wait, and one that is found by way of another for longer: so where the segment lies is
/// here. (Gets of blocks of 8 to 256 bytes took 1.10 times as long as OpenSHMEM's without.)
class quick_link {
 public:
  constexpr quick_link() = default;
  explicit quick_link(backend& of) : of_(&of), base_(of.base_) {
    if (!of.one_machine_) served_ = of.rank_;
  }
  explicit operator bool() const { return of_ != nullptr; }
  std::size_t segment_size() const { return of_->segment_size(); }
  void* address(rank_t rank, std::size_t offset) const { return of_->address(rank, offset); }

  [[gnu::always_inline]] void put(rank_t rank, std::size_t offset, const void* from,
                                  std::size_t bytes) {
    if (backend::skewed(from, offset, bytes)) [[unlikely]]
      return of_->put(rank, offset, from, bytes);
    shmem_putmem(base_ + offset, from, bytes, static_cast<int>(rank));
    of_->traffic_.puts.begin(false);
  }

  [[gnu::always_inline]] void get(rank_t rank, std::size_t offset, void* to, std::size_t bytes) {
    if (backend::skewed(to, offset, bytes) || rank == served_ ||
        !of_->traffic_.puts.all_finished(false)) [[unlikely]]
      return of_->get(rank, offset, to, bytes);
    shmem_getmem(to, base_ + offset, bytes, static_cast<int>(rank));
    acquire_fence();
  }

  template <atomic_op Op, atomic_word T>
  T fetch_op(rank_t rank, std::size_t offset, T value) {
    return of_->fetch_op<Op>(rank, offset, value);
  }
  template <atomic_word T>
  T compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
    return of_->compare_swap(rank, offset, expected, desired);
  }
  template <atomic_word T>
  T atomic_load(rank_t rank, std::size_t offset) {
    return of_->atomic_load<T>(rank, offset);
  }
  template <std::unsigned_integral C>
  void accumulate(rank_t rank, std::size_t offset, const C* from, std::size_t n) {
    of_->accumulate(rank, offset, from, n);
  }
  void flush(rank_t) { of_->flush(); }
  void flush() { of_->flush(); }

 private:
  static constexpr rank_t nobody = ~rank_t{0};

  backend* of_ = nullptr;
  char* base_ = nullptr;
  rank_t served_ = nobody;  ///< this rank, if gets of its own memory serve others first
};

inline quick_link backend::quick_far_view() { return quick_link(*this); }

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
  try_bitwise();
}

inline void backend::start(thread_level threads) {
  traffic_.threads = threads == thread_level::multiple;
  auto before = job::find_foreign_start();
  auto refuse_to_be_alone = [&] {
    refuse_separate_jobs("shmem", before,
                         "OpenSHMEM is told of none of them, so that launcher and this OpenSHMEM "
                         "do not know each other",
                         ", with oshrun, or with 'srun --mpi=pmix' where Slurm has it");
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

/// Collective. Between processes of one machine UCX 1.13 on x86-64 takes the word's old value for
/// the operand of the and, or and xor that return it: so each rank tries them, on a word of its
/// own, of the next rank and of the next one on this machine, each of which nobody else tries.
inline void backend::try_bitwise() {
  auto works = [this](std::size_t offset, rank_t rank) {
    auto* word = at<unsigned long>(offset);
    int pe = static_cast<int>(rank);
    bool right = shmem_ulong_atomic_fetch_or(word, 5, pe) == 0 &&
                 shmem_ulong_atomic_fetch_xor(word, 6, pe) == 5 &&
                 shmem_ulong_atomic_fetch_and(word, 2, pe) == 3 &&
                 shmem_ulong_atomic_fetch(word, pe) == 2;
    shmem_ulong_atomic_set(word, 0, pe);
    return right;
  };
  auto next = std::ranges::find_if(neighbours_, [this](auto n) { return n.rank > rank_; });
  if (next == neighbours_.end()) next = neighbours_.begin();
  bool own = works(0, rank_), others = works(8, (rank_ + 1) % nprocs_);
  bool near = next == neighbours_.end() || works(16, next->rank);
  bitwise_works_ = own && others && near;
  shmem_barrier_all();
}

template <atomic_op Op, atomic_word T>
T backend::fetch_op(rank_t rank, std::size_t offset, T value) {
  serve_before_own(rank);
  int pe = static_cast<int>(rank);
  constexpr bool bitwise =
      Op == atomic_op::bit_and || Op == atomic_op::bit_or || Op == atomic_op::bit_xor;
  if (bitwise && !bitwise_works_) return fetch_by_swaps<Op>(*this, rank, offset, value);
  if constexpr (Op == atomic_op::min || Op == atomic_op::max) {
    return fetch_by_swaps<Op>(*this, rank, offset, value);
  } else if constexpr (sizeof(T) == 8) {
    auto* word = at<unsigned long>(offset);
    auto operand = static_cast<unsigned long>(value);
    if constexpr (Op == atomic_op::add)
      return static_cast<T>(shmem_ulong_atomic_fetch_add(word, operand, pe));
    if constexpr (Op == atomic_op::bit_and)
      return static_cast<T>(shmem_ulong_atomic_fetch_and(word, operand, pe));
    if constexpr (Op == atomic_op::bit_or)
      return static_cast<T>(shmem_ulong_atomic_fetch_or(word, operand, pe));
    if constexpr (Op == atomic_op::bit_xor)
      return static_cast<T>(shmem_ulong_atomic_fetch_xor(word, operand, pe));
    if constexpr (Op == atomic_op::swap)
      return static_cast<T>(shmem_ulong_atomic_swap(word, operand, pe));
  } else {
    auto* word = at<unsigned>(offset);
    auto operand = static_cast<unsigned>(value);
    if constexpr (Op == atomic_op::add)
      return static_cast<T>(shmem_uint_atomic_fetch_add(word, operand, pe));
    if constexpr (Op == atomic_op::bit_and)
      return static_cast<T>(shmem_uint_atomic_fetch_and(word, operand, pe));
    if constexpr (Op == atomic_op::bit_or)
      return static_cast<T>(shmem_uint_atomic_fetch_or(word, operand, pe));
    if constexpr (Op == atomic_op::bit_xor)
      return static_cast<T>(shmem_uint_atomic_fetch_xor(word, operand, pe));
    if constexpr (Op == atomic_op::swap)
      return static_cast<T>(shmem_uint_atomic_swap(word, operand, pe));
  }
}

/// 32 bits go by way of the 64 around them, 1 load + 1 compare-and-swap: Open MPI 4.1 writes 8
/// bytes of result for 4, and so over its own stack. Changes to the other half only cost another
/// round.
template <atomic_word T>
T backend::compare_swap(rank_t rank, std::size_t offset, T expected, T desired) {
  serve_before_own(rank);
  int pe = static_cast<int>(rank);
  if constexpr (sizeof(T) == 8) {
    return static_cast<T>(shmem_ulong_atomic_compare_swap(at<unsigned long>(offset),
                                                          static_cast<unsigned long>(expected),
                                                          static_cast<unsigned long>(desired), pe));
  } else {
    bool high = (offset % 8 != 0) == (std::endian::native == std::endian::little);
    int shift = high ? 32 : 0;
    auto* both = at<unsigned long>(offset / 8 * 8);
    unsigned long old = shmem_ulong_atomic_fetch(both, pe);
    for (;;) {
      auto mine = static_cast<std::uint32_t>(old >> shift);
      if (static_cast<T>(mine) != expected) return static_cast<T>(mine);
      unsigned long change = (mine ^ static_cast<std::uint32_t>(desired));
      unsigned long seen = shmem_ulong_atomic_compare_swap(both, old, old ^ change << shift, pe);
      if (seen == old) return expected;
      old = seen;
    }
  }
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
