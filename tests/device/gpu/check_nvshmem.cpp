// Compares the declarations of core/detail/device/nvshmem.hpp with NVSHMEM's own. Compiled where there are
// NVSHMEM's headers; it need not run.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <farside/core/detail/device/nvshmem.hpp>

#include <cstddef>

namespace ours = far::detail::nvshmem_abi;

static_assert(sizeof(ours::unique_id) == sizeof(nvshmemx_uniqueid_t));
static_assert(sizeof(ours::unique_id_arguments) == sizeof(nvshmemx_uniqueid_args_t));
static_assert(sizeof(ours::init_arguments) == sizeof(nvshmemx_init_args_t));
static_assert(sizeof(ours::init_attributes) == sizeof(nvshmemx_init_attr_t));
static_assert(offsetof(ours::init_attributes, arguments) == offsetof(nvshmemx_init_attr_t, args));
static_assert(offsetof(ours::init_arguments, by_id) == offsetof(nvshmemx_init_args_t, uid_args));
static_assert(ours::init_with_unique_id == NVSHMEMX_INIT_WITH_UNIQUEID);

int main() {}
