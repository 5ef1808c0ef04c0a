// The segments of a job whose ranks are all on one node: one memfd, mapped by every rank.
#pragma once

#include <farside/backend/mpi/session.hpp>
#include <farside/backend/shared/segment_size.hpp>
#include <farside/backend/shared/shared_memory.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <optional>

namespace far::inline FARSIDE_BACKEND::detail::mpi_backend {

/// Where rank 0 keeps the memory, and what it has written into it.
struct memory_offer {
  std::uint64_t pid, descriptor, nonce;
  std::uint64_t valid;
};

inline memory_offer offer_memory(int fd) {
  memory_offer offer{static_cast<std::uint64_t>(getpid()), static_cast<std::uint64_t>(fd), 0, 0};
  if (fd < 0 || getrandom(&offer.nonce, sizeof offer.nonce, 0) != sizeof offer.nonce) return offer;
  offer.valid = pwrite(fd, &offer.nonce, sizeof offer.nonce, 0) == sizeof offer.nonce;
  return offer;
}

/// The memory that rank 0 offers, or -1. In another process namespace the same path may lead to
/// somebody else's file: hence the nonce.
inline int accept_memory(const memory_offer& offer) {
  if (!offer.valid) return -1;
  std::string path = text("/proc/", offer.pid, "/fd/", offer.descriptor);
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  std::uint64_t seen = 0;
  if (fd >= 0 && pread(fd, &seen, sizeof seen, 0) == sizeof seen && seen == offer.nonce) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

/// Maps the memory; what went wrong, if something did.
inline std::string map_memory(shared_memory& memory, int fd, const session& mpi,
                              std::size_t segment) {
  try {
    memory = shared_memory(fd, mpi.rank(), mpi.nprocs(), segment);
    return {};
  } catch (const error& problem) {
    return problem.what();
  }
}

/// Gives every rank the same memory, if all are on one node and can open what rank 0 made;
/// otherwise nothing, on all ranks alike. Collective. Nothing lies in /dev/shm, and pages are
/// committed when they are touched.
inline std::optional<shared_memory> share_memory(const session& mpi, const start_options& options) {
  bool allowed = switch_setting("FARSIDE_MPI_SHARED", true) && !mpi.strict();
  if (!mpi.all(allowed && mpi.node_ranks() == mpi.nprocs())) return {};

  int fd = mpi.rank() == 0 ? memfd_create("farside", MFD_CLOEXEC) : -1;
  memory_offer offer{};
  if (mpi.rank() == 0) offer = offer_memory(fd);
  MPI_Request request;
  MPI_Ibcast(&offer, sizeof offer / sizeof(std::uint64_t), MPI_UINT64_T, 0, mpi.comm(), &request);
  wait_politely(request);
  if (mpi.rank() != 0) fd = accept_memory(offer);

  std::optional<shared_memory> result;
  if (mpi.all(fd >= 0 && offer.valid)) {
    if (mpi.rank() == 0) {
      std::uint64_t zero = 0;
      if (pwrite(fd, &zero, sizeof zero, 0) != sizeof zero)
        raise("cannot write to the job's memory: ", std::strerror(errno),
              ". Set FARSIDE_MPI_SHARED=0 to do without.");
    }
    std::size_t segment = mpi.least(choose_segment(options, mpi.nprocs()));
    std::string problem = map_memory(result.emplace(), fd, mpi, segment);
    bool all_mapped = mpi.all(problem.empty());
    if (!problem.empty()) throw usage_error(problem);
    if (!all_mapped)
      raise("another rank could not map the shared memory; its own message says why.");
  }
  if (fd >= 0) ::close(fd);
  return result;
}

}  // namespace far::inline FARSIDE_BACKEND::detail::mpi_backend
