// How the window of window.hpp is made: how large, where its memory is, and that it is zero.
#pragma once

#include <farside/backend/mpi/session.hpp>
#include <farside/backend/mpi/window.hpp>
#include <farside/base/environment.hpp>

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// Bytes that fit into /dev/shm at this moment.
inline std::size_t free_in_dev_shm() {
  struct statvfs info;
  if (statvfs("/dev/shm", &info) != 0) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(info.f_bavail) * info.f_frsize;
}

/// Half of what is free, shared by the ranks of this node, and at most as much of /dev/shm if the
/// memory is there: a /dev/shm that has run full kills whoever touches the next page.
inline std::size_t window::default_segment(const session& mpi) const {
  constexpr std::size_t least = std::size_t{1} << 20, most = std::size_t{16} << 30;
  std::size_t room = memory_available();
  if (library_allocates) room = std::min(room, free_in_dev_shm());
  return std::clamp(room / 2 / mpi.node_ranks(), least, most) / page * page;
}

/// Open MPI 4: what each rank will choose is good, and the same. Collective.
inline void check_components(const session& mpi) {
  std::string allowed = library_setting("osc");
  if (allows_osc(allowed, "rdma"))
    raise(
        "Open MPI may choose its window component 'osc rdma' in this job, and its compare-and-swap "
        "crashes. Exclude it: start the program with 'mpirun --mca osc ^rdma', or set "
        "OMPI_MCA_osc=^rdma before MPI_Init is called.");
  bool lowered = setting("OMPI_MCA_osc_ucx_priority").has_value();  // see prefer_osc_pt2pt()
  bool everywhere = mpi.all(lowered), nowhere = mpi.all(!lowered);
  if (!everywhere && !nowhere && allowed.starts_with('^'))
    raise(
        "some nodes of this job have a network with RDMA and some have not, and Open MPI would "
        "choose different window components there. Name one for all: 'mpirun --mca osc ucx', or "
        "pt2pt.");
}

inline void window::open(const session& mpi, const start_options& options) {
  if (FARSIDE_MPI_AVOIDS_OSC_RDMA) check_components(mpi);
  comm_ = mpi.comm();
  rank_ = mpi.rank();
  nprocs_ = mpi.nprocs();
  single_ = !mpi.multiple_threads();
  strict_ = mpi.strict();
  several_nodes_ = !mpi.one_node();
  // Within a node `osc sm` comes before all but rdma, unless somebody has raised another one above
  // it: its priority is 100, and no parameter.
  flush_is_a_fence_ = FARSIDE_MPI_AVOIDS_OSC_RDMA && !several_nodes_ &&
                      allows_osc(library_setting("osc"), "sm") &&
                      library_number("osc_ucx_priority") < 100;
  if (single_) {
    store_ = std::make_unique<char[]>(store_bytes);
    room_ = store_.get();
    last_room_ = room_ + (store_bytes - small - 8);
  }
#ifndef OPEN_MPI
  oversubscribed_ = mpi.oversubscribed();
#endif
  std::size_t asked =
      options.segment != 0 ? options.segment : size_setting("FARSIDE_SEGMENT").value_or(0);
  segment_ = mpi.least(asked != 0 ? asked : default_segment(mpi));

  // Windows begin where the library likes (8 bytes are all Open MPI aligns to): a page more lets
  // the segment begin on a page boundary. The last byte is never part of it, and is spare.
  bytes_ = (segment_ + page - 1) / page * page + page;
  allocate(mpi);
  base_ =
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory_) + page - 1) / page * page);
  spare_byte_ = static_cast<MPI_Aint>(bytes_ - 1);
  exchange_starts(mpi);
  if (library_allocates) zero();
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win_);
  MPI_Win_sync(win_);
  mpi.barrier();
}

// The hints are true of us: all ranks ask for the same, and nothing relies on the order of atomics
// that are under way together. `accumulate_ops` is left alone: even its default promises that
// atomics on a word at one time are of one kind (or NO_OP), and there is no weaker value. In strict
// mode that is so: compare-and-swaps and NO_OP, or replacements and NO_OP, or sums and NO_OP
// (window_strict.hpp). Otherwise it is not, and this is an assumption beyond the standard too: that
// a library keeps atomics of several kinds on a word apart. Open MPI 4.1 (sm, ucx, pt2pt) and
// MPICH 4.0 did so when tried.
inline void window::allocate(const session& mpi) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "same_size", "true");
  MPI_Info_set(info, "same_disp_unit", "true");
  MPI_Info_set(info, "accumulate_ordering", "none");
  MPI_Comm_set_errhandler(mpi.comm(), MPI_ERRORS_RETURN);
  int code = make_window(mpi, info);
  MPI_Comm_set_errhandler(mpi.comm(), MPI_ERRORS_ARE_FATAL);
  MPI_Info_free(&info);
  if (code != MPI_SUCCESS)
    raise("rank ", mpi.rank(), " could not make a window for its segment of ",
          human_size(static_cast<double>(segment_)), " (this node has ", mpi.node_ranks(),
          " ranks): ", mpi_error_text(code),
          ". Free memory: ", human_size(static_cast<double>(memory_available())),
          ", free in /dev/shm: ", human_size(static_cast<double>(free_in_dev_shm())),
          ". If that is too little, set a smaller FARSIDE_SEGMENT, as in FARSIDE_SEGMENT=64M.",
          single_
              ? ""
              : " Open MPI's 'osc pt2pt' refuses thread_level::multiple: use another component, "
                "as in 'mpirun --mca osc ucx', or thread_level::single.");
  int *model = nullptr, found = 0;
  MPI_Win_get_attr(win_, MPI_WIN_MODEL, &model, &found);
  if (!found || *model != MPI_WIN_UNIFIED)
    raise(
        "this MPI library offers only the separate memory model for windows here "
        "(MPI_WIN_SEPARATE); "
        "far memory needs MPI_WIN_UNIFIED. Use another MPI library or another window component.");
}

/// Memory is committed when it is touched, by either way.
///
/// Open MPI shares the memory of a node only if it has made it: `osc sm` in /dev/shm, and it
/// refuses what does not fit there; `osc ucx` as a System V segment, `osc pt2pt` with malloc.
///
/// MPICH was no faster on memory of its own, and takes up to a second per GiB to make it (an msync
/// for every page): it gets ours. That leaves nothing in /dev/shm either.
inline int window::make_window(const session& mpi, MPI_Info info) {
  auto size = static_cast<MPI_Aint>(bytes_);
  if constexpr (library_allocates)
    return MPI_Win_allocate(size, 1, info, mpi.comm(), &memory_, &win_);
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return MPI_ERR_NO_MEM;
  memory_ = static_cast<char*>(at);
  return MPI_Win_create(memory_, size, 1, info, mpi.comm(), &win_);
}

inline void window::exchange_starts(const session& mpi) {
  std::uint64_t start = static_cast<std::uint64_t>(base_ - memory_);
  std::vector<std::uint64_t> starts(nprocs_);
  MPI_Request request;
  MPI_Iallgather(&start, 1, MPI_UINT64_T, starts.data(), 1, MPI_UINT64_T, mpi.comm(), &request);
  wait_politely(request);
  targets_ = std::make_unique<target[]>(nprocs_);
  starts_ = std::make_unique<MPI_Aint[]>(nprocs_);
  lasts_ = std::make_unique<std::uint64_t[]>(nprocs_);
  for (rank_t rank = 0; rank < nprocs_; ++rank) starts_[rank] = static_cast<MPI_Aint>(starts[rank]);
  start_ = starts_[0];
  if (single_) {
    started_ = flushed_ = 1;
    clean(rank_);
  }
  plain_ = single_ && !strict_ && std::ranges::count(starts, starts[0]) == nprocs_;
}

/// Pages that nobody has touched are zero, and are left untouched. What malloc may have had in use
/// before is small, and is cleared in any case.
inline void window::zero() {
  constexpr std::size_t recycled_at_most = std::size_t{32} << 20, step = std::size_t{64} << 20;
  if (segment_ <= recycled_at_most) {
    std::memset(base_, 0, segment_);
    return;
  }
  const auto granule = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident(step / granule + 1);
  for (std::size_t begin = 0; begin < segment_; begin += step) {
    std::size_t length = std::min(step, segment_ - begin);
    // Start on a page of the machine, which may be larger than ours.
    std::size_t lead = reinterpret_cast<std::uintptr_t>(base_ + begin) % granule;
    bool known = mincore(base_ + begin - lead, length + lead, resident.data()) == 0;
    for (std::size_t at = 0; at < length;) {
      std::size_t next = std::min((at + lead) / granule * granule + granule - lead, length);
      if (!known || (resident[(at + lead) / granule] & 1))
        std::memset(base_ + begin + at, 0, next - at);
      at = next;
    }
  }
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend
