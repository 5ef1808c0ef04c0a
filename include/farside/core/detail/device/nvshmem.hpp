// The few functions of NVSHMEM that are used, out of its host library, which is found and opened when a
// program first asks for device memory: so a program is built without NVSHMEM, and starts where there
// is none. base/nvshmem_places.hpp says where it is looked for.
//
// The declarations are those of NVSHMEM 3's ABI; tests/device/gpu/check_nvshmem.cpp compares them with the
// real headers where there are any.
#pragma once

#include <farside/base/error.hpp>
#include <farside/base/nvshmem_places.hpp>

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <string>

namespace far::inline FARSIDE_BACKEND::detail {

/// NVSHMEM's own structures: each begins with a version, which is its number and its size.
namespace nvshmem_abi {
struct unique_id {
  int version = (1 << 16) + 128;
  char content[124] = {};
};
struct unique_id_arguments {
  int version = 0;
  unique_id* id = nullptr;
  int rank = 0, nranks = 0;
};
struct init_arguments {
  int version = 0;
  unique_id_arguments by_id;
  char padding[96] = {};
};
struct init_attributes {
  int version = 0;
  void* communicator = nullptr;
  init_arguments arguments;
};
inline constexpr unsigned init_with_unique_id = 1 << 3;
static_assert(sizeof(unique_id) == 128 && sizeof(init_arguments) == 128 &&
              sizeof(init_attributes) == 144);
}  // namespace nvshmem_abi

class nvshmem_library {
 public:
  static constexpr int least_major = 3, least_minor = 0;

  /// Why it cannot be used; empty if it can.
  std::string open() {
    std::string tried;
    for (const std::string& name : nvshmem_places()) {
      library_ = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
      if (library_ != nullptr) break;
      const char* why = dlerror();
      tried += (tried.empty() ? "" : "; ") + (why != nullptr ? std::string(why) : name);
    }
    if (library_ == nullptr)
      return "no NVSHMEM library found (tried " + tried +
             "). Install NVSHMEM 3 or later, as the Python package nvidia-nvshmem-cu13, and set "
             "FARSIDE_NVSHMEM=/path/to/libnvshmem_host.so.3 if it lies elsewhere";
    int major = 0, minor = 0, patch = 0;
    void (*version)(int*, int*, int*) = nullptr;
    load(version, "nvshmemx_vendor_get_version_info");
    if (version != nullptr) version(&major, &minor, &patch);
    if (major < least_major)
      return text("NVSHMEM is too old: version ", major, ".", minor, ".", patch, ", and ",
                  least_major, ".", least_minor,
                  " or later is needed. Install a later one, and set FARSIDE_NVSHMEM to its "
                  "libnvshmem_host.so.3");
    bool all = load(get_unique_id, "nvshmemx_get_uniqueid") &
               load(set_arguments, "nvshmemx_set_attr_uniqueid_args") &
               load(init, "nvshmemx_hostlib_init_attr") &
               load(finalize, "nvshmemx_hostlib_finalize") & load(allocate, "nvshmem_malloc") &
               load(free, "nvshmem_free") & load(pointer, "nvshmem_ptr") &
               load(get_on_stream, "nvshmemx_getmem_on_stream") &
               load(put_on_stream, "nvshmemx_putmem_on_stream") &
               load(quiet_on_stream, "nvshmemx_quiet_on_stream");
    if (!all)
      return text("NVSHMEM ", major, ".", minor, ".", patch,
                  " has not all functions that are needed: its host library should have "
                  "nvshmemx_hostlib_init_attr and nvshmemx_getmem_on_stream. Install NVSHMEM 3.4");
    return {};
  }

  int (*get_unique_id)(nvshmem_abi::unique_id*) = nullptr;
  int (*set_arguments)(int, int, const nvshmem_abi::unique_id*,
                       nvshmem_abi::init_attributes*) = nullptr;
  int (*init)(unsigned, nvshmem_abi::init_attributes*) = nullptr;
  void (*finalize)() = nullptr;
  void* (*allocate)(std::size_t) = nullptr;
  void (*free)(void*) = nullptr;
  void* (*pointer)(const void*, int) = nullptr;
  void (*get_on_stream)(void*, const void*, std::size_t, int, cudaStream_t) = nullptr;
  void (*put_on_stream)(void*, const void*, std::size_t, int, cudaStream_t) = nullptr;
  void (*quiet_on_stream)(cudaStream_t) = nullptr;

 private:
  template <class F>
  bool load(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library_, name));
    return function != nullptr;
  }

  void* library_ = nullptr;
};

}  // namespace far::inline FARSIDE_BACKEND::detail
