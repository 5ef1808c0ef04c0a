// Which back end this translation unit is built for. The CMake target says it by one macro;
// with none it is smp, which needs nothing.
#pragma once

#if defined(FARSIDE_USE_SMP) + defined(FARSIDE_USE_MPI) + defined(FARSIDE_USE_SHMEM) + \
        defined(FARSIDE_USE_SIM) + defined(FARSIDE_USE_ANY) >                          \
    1
#error \
    "farside: two back ends chosen at once. Link exactly one of farside::smp, farside::mpi, farside::shmem, farside::sim and farside::any (they define FARSIDE_USE_SMP, FARSIDE_USE_MPI, FARSIDE_USE_SHMEM, FARSIDE_USE_SIM, FARSIDE_USE_ANY)."
#endif

#if defined(FARSIDE_USE_MPI)
#if !__has_include(<mpi.h>)
#error \
    "farside: FARSIDE_USE_MPI is set but there is no <mpi.h>. Link farside::mpi, or compile with an MPI's mpicxx."
#endif
#define FARSIDE_BACKEND_NAME mpi
#define FARSIDE_BACKEND_NUMBER 2
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#if defined(OPEN_MPI)
#define FARSIDE_BACKEND_NOTE "mpi openmpi"
#elif defined(MPICH_VERSION)
#define FARSIDE_BACKEND_NOTE "mpi mpich"
#else
#define FARSIDE_BACKEND_NOTE "mpi other"
#endif
#elif defined(FARSIDE_USE_SHMEM)
#if !__has_include(<shmem.h>)
#error \
    "farside: FARSIDE_USE_SHMEM is set but there is no <shmem.h>. Link farside::shmem, or compile with oshc++."
#endif
#define FARSIDE_BACKEND_NAME shmem
#define FARSIDE_BACKEND_NUMBER 3
#define FARSIDE_BACKEND_NOTE "shmem openmpi"
#elif defined(FARSIDE_USE_SIM)
#define FARSIDE_BACKEND_NAME sim
#define FARSIDE_BACKEND_NUMBER 4
#define FARSIDE_BACKEND_NOTE "sim"
#elif defined(FARSIDE_USE_ANY)
#define FARSIDE_BACKEND_NAME any
#define FARSIDE_BACKEND_NUMBER 5
#define FARSIDE_BACKEND_NOTE "any"
#else
#define FARSIDE_BACKEND_NAME smp
#define FARSIDE_BACKEND_NUMBER 1
#define FARSIDE_BACKEND_NOTE "smp"
#endif

// Each back end, checked or not, has an inline namespace of its own inside `far`: an object file
// built for another one has other symbols, so that it cannot be linked by accident.
#if defined(FARSIDE_CHECKED) && FARSIDE_CHECKED
#undef FARSIDE_CHECKED
#define FARSIDE_CHECKED 1
#define FARSIDE_JOIN_(a, b) a##b
#define FARSIDE_JOIN(a, b) FARSIDE_JOIN_(a, b)
#define FARSIDE_BACKEND FARSIDE_JOIN(FARSIDE_BACKEND_NAME, _checked)
#else
#undef FARSIDE_CHECKED
#define FARSIDE_CHECKED 0
#define FARSIDE_BACKEND FARSIDE_BACKEND_NAME
#endif

// The same absolute symbol in every object file: equal values link, different ones are a
// 'multiple definition', also where two objects share no other name.
#define FARSIDE_TEXT_(x) #x
#define FARSIDE_TEXT(x) FARSIDE_TEXT_(x)
asm(".globl farside_objects_built_for_different_backends_or_checking\n"
    ".hidden farside_objects_built_for_different_backends_or_checking\n"
    ".set farside_objects_built_for_different_backends_or_checking, " FARSIDE_TEXT(
        FARSIDE_BACKEND_NUMBER) FARSIDE_TEXT(FARSIDE_CHECKED) "\n");

namespace far::job_board {

/// An ELF note that tells `farside run` how to start the program: `readelf -n` shows it.
struct program_note {
  unsigned name_size, description_size, type;
  char name[8];
  char description[24];
};

[[gnu::used, gnu::section(".note.farside"), gnu::aligned(4)]] static const program_note note = {
    sizeof note.name, sizeof note.description, 1, "Farside", FARSIDE_BACKEND_NOTE};

}  // namespace far::job_board

namespace far::inline FARSIDE_BACKEND::detail {
namespace job = ::far::job_board;  // a short name that users of namespace far do not see
}
