// Memory that other processes reach, and memory that they do not.
#include "library.hpp"

#include <cstdlib>

namespace armci {
namespace {

int allocate(void** addresses, armci_size_t bytes, group_record& group) {
  library& lib = here();
  struct part {
    std::uint64_t offset;
    bool failed;
  };
  part mine{0, false};
  std::string why;
  try {
    if (bytes < 0) raise(bytes, " bytes were asked for.");
    struct alignas(64) line {
      std::byte bytes[64];
    };
    if (bytes != 0)
      mine.offset = far::alloc<line>((static_cast<std::size_t>(bytes) + 63) / 64).offset();
  } catch (const std::exception& e) {
    mine.failed = true;
    why = e.what();
  }
  auto all = far::all_gather(mine, group.team);
  bool failed = false;
  for (const part& p : all) failed = failed || p.failed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    far::ptr<std::byte> at(static_cast<far::rank_t>(group.members[i]), all[i].offset);
    addresses[i] = all[i].offset == 0 || failed ? nullptr : lib.address(at);
  }
  if (!failed) return 0;
  if (mine.offset != 0) far::dealloc(far::ptr<std::byte>(far::rank(), mine.offset));
  if (!why.empty()) raise(why);
  raise(
      "another process of the group has no room for what it asked for; its own message tells "
      "more.");
}

int release(void* address, group_record& group) {
  library& lib = here();
  lib.order().flush();
  far::barrier(group.team);  // nobody uses it any more
  if (address != nullptr) far::dealloc(lib.place(address, lib.rank(), 0));
  return 0;
}

}  // namespace
}  // namespace armci

extern "C" {

int PARMCI_Malloc(void** addresses, armci_size_t bytes) {
  return armci::call("ARMCI_Malloc",
                     [&] { return armci::allocate(addresses, bytes, armci::here().world()); });
}
int ARMCI_Malloc_group(void** addresses, armci_size_t bytes, ARMCI_Group* group) {
  return armci::call("ARMCI_Malloc_group",
                     [&] { return armci::allocate(addresses, bytes, armci::member_of(group)); });
}
int PARMCI_Malloc_memdev(void** addresses, armci_size_t bytes, const char*) {
  return PARMCI_Malloc(addresses, bytes);
}
int PARMCI_Malloc_group_memdev(void** addresses, armci_size_t bytes, ARMCI_Group* group,
                               const char*) {
  return ARMCI_Malloc_group(addresses, bytes, group);
}

int PARMCI_Free(void* address) {
  return armci::call("ARMCI_Free", [&] { return armci::release(address, armci::here().world()); });
}
int ARMCI_Free_group(void* address, ARMCI_Group* group) {
  return armci::call("ARMCI_Free_group",
                     [&] { return armci::release(address, armci::member_of(group)); });
}
int PARMCI_Free_memdev(void* address) { return PARMCI_Free(address); }

void* PARMCI_Malloc_local(armci_size_t bytes) {
  return armci::call("ARMCI_Malloc_local", [&]() -> void* {
    std::size_t lines = (static_cast<std::size_t>(bytes) + 63) / 64;
    void* memory = bytes < 0 ? nullptr : std::aligned_alloc(64, 64 * (lines == 0 ? 1 : lines));
    if (memory == nullptr) armci::raise("there is no memory for ", bytes, " bytes.");
    return memory;
  });
}
int PARMCI_Free_local(void* address) {
  std::free(address);
  return 0;
}

// Loads and stores of the own segment are those of other ranks, after a flush of it.
void PARMCI_Access_begin(void*) {
  armci::call("ARMCI_Access_begin", [] { armci::here().order().flush(far::rank()); });
}
void PARMCI_Access_end(void*) {
  armci::call("ARMCI_Access_end", [] { armci::here().order().flush(far::rank()); });
}

}  // extern "C"

FARSIDE_ARMCI_NAME(Malloc)
FARSIDE_ARMCI_NAME(Malloc_memdev)
FARSIDE_ARMCI_NAME(Malloc_group_memdev)
FARSIDE_ARMCI_NAME(Free)
FARSIDE_ARMCI_NAME(Free_memdev)
FARSIDE_ARMCI_NAME(Malloc_local)
FARSIDE_ARMCI_NAME(Free_local)
FARSIDE_ARMCI_NAME(Access_begin)
FARSIDE_ARMCI_NAME(Access_end)
