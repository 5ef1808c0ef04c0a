// The device memory of the stand-in: each rank's segment is a memfd, which every rank of the node maps
// twice.
//
//   public    | rank 0 | rank 1 | ...   PROT_NONE: what device_ptr::local() gives. The CPU that touches it
//                                       gets a fault, as it does with an address of real device memory.
//   kernel    | rank 0 | rank 1 | ...   readable and writable: what kernels and copies use.
//
// One mapping whose protection is lifted for kernels would not do: protection is the same for all threads
// of a process, so that the host could touch the memory, unnoticed, while any kernel runs.
#pragma once

#include <farside/core/collectives.hpp>
#include <farside/core/draft.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace far::inline FARSIDE_BACKEND::detail {

class stand_in_memory {
 public:
  /// Collective. All ranks give the same size, a multiple of a page's.
  stand_in_memory(rank_t rank, rank_t nprocs, std::size_t bytes) : nprocs_(nprocs), bytes_(bytes) {
    invitation mine;
    int file = memfd_create("farside-device", MFD_CLOEXEC);
    std::string problem;
    struct stat info{};
    if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0 || fstat(file, &info) != 0)
      problem = text("rank ", rank, ": no ", bytes,
                     " bytes for the stand-in of device memory: ", std::strerror(errno),
                     ". Ask for less: FARSIDE_DEVICE_SEGMENT=SIZE.");
    mine = {static_cast<std::int64_t>(getpid()), file, static_cast<std::uint64_t>(info.st_dev),
            static_cast<std::uint64_t>(info.st_ino)};
    auto all = all_gather(mine);
    if (problem.empty()) problem = map(rank, all);
    problem = first_problem(problem, world());  // after this all have opened what they need
    if (file >= 0) close(file);
    if (!problem.empty()) {
      unmap();
      raise<allocation_error>(problem);
    }
  }
  stand_in_memory(const stand_in_memory&) = delete;
  ~stand_in_memory() { unmap(); }

  std::byte* public_address(rank_t rank, std::size_t offset) const {
    return public_ + rank * bytes_ + offset;
  }
  std::byte* kernel_address(rank_t rank, std::size_t offset) const { return bases_[rank] + offset; }
  std::byte* const* bases() const { return bases_.data(); }
  std::size_t bytes() const { return bytes_; }

 private:
  /// How others find a rank's file, and know that it is the one.
  struct invitation {
    std::int64_t process = 0;
    std::int64_t descriptor = -1;
    std::uint64_t device = 0, inode = 0;
  };

  std::string map(rank_t me, const std::vector<invitation>& all) {
    std::size_t whole = bytes_ * nprocs_;
    auto reserve = [&] {
      void* at =
          mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
    };
    public_ = reserve();
    kernel_ = reserve();
    if (public_ == nullptr || kernel_ == nullptr)
      return text("rank ", me, ": no addresses for the stand-in of device memory of ", nprocs_,
                  " ranks with ", bytes_, " bytes each: ", std::strerror(errno));
    for (rank_t r = 0; r < nprocs_; ++r) {
      std::string name = text("/proc/", all[r].process, "/fd/", all[r].descriptor);
      int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
      struct stat info{};
      bool found = file >= 0 && fstat(file, &info) == 0 && info.st_dev == all[r].device &&
                   info.st_ino == all[r].inode;
      bool mapped = found && mmap(kernel_ + r * bytes_, bytes_, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
      if (file >= 0) close(file);
      if (!mapped)
        return text("rank ", me, " cannot map the device memory of rank ", r,
                    ": the stand-in works on one machine, for processes of one user. Start all "
                    "ranks on one host.");
      bases_.push_back(kernel_ + r * bytes_);
    }
    return {};
  }
  void unmap() {
    for (std::byte* at : {public_, kernel_})
      if (at != nullptr) munmap(at, bytes_ * nprocs_);
  }

  rank_t nprocs_;
  std::size_t bytes_;
  std::byte* public_ = nullptr;
  std::byte* kernel_ = nullptr;
  std::vector<std::byte*> bases_;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
