# Flavours: the ways in which every test is built. A flavour is a back end, one transport that
# carries it, and flags; farside_program() makes one program per flavour.
#
#   smp           ranks are processes, or threads with `farside run --threads`
#   openmpi       mpi with Open MPI        mpich   mpi with MPICH
#   shmem         shmem with what oshc++ belongs to
#   sim           all ranks in one process, against an adversary
#   any           any of the above, as `farside run --backend` says
#   smp-asan      smp with the address and undefined-behaviour sanitizers and FARSIDE_CHECKED=1
#   smp-tsan      smp with the thread sanitizer: its ranks are always threads
#   smp-checked   smp with FARSIDE_CHECKED=1
#   smp-clang     smp compiled by clang++-19
#
# The sanitizers are clang++-19's where it is found: g++-12 takes twice as long over the same source.
include_guard(GLOBAL)

set(farside_flavours "")       # every flavour of this build
set(farside_main_flavours "")  # those whose programs a user could want: no sanitizer, no clang
set(farside_clang_flavours "") # those that FARSIDE_CLANG_CXX compiles and links

# Warnings and sanitizers for our own programs; a user's program never sees them.
add_library(farside_own_flags INTERFACE)
target_compile_options(farside_own_flags INTERFACE -Wall -Wextra)
if(FARSIDE_SANITIZE)
  list(JOIN FARSIDE_SANITIZE "," sanitizers)
  target_compile_options(farside_own_flags INTERFACE -fsanitize=${sanitizers}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(farside_own_flags INTERFACE -fsanitize=${sanitizers})
endif()

# farside_flavour(<name> <backend> [TRANSPORT target] [FLAGS flag...] [DEFINES define...] [EXTRA])
#
# FLAGS are for the compiler and the linker. EXTRA: built for tests only.
macro(farside_flavour name backend)
  cmake_parse_arguments(flavour "EXTRA" "TRANSPORT" "FLAGS;DEFINES" ${ARGN})
  string(TOUPPER ${backend} flavour_macro)
  add_library(farside_flavour_${name} INTERFACE)
  target_link_libraries(farside_flavour_${name} INTERFACE farside::headers farside_own_flags
                        ${flavour_TRANSPORT})
  target_compile_definitions(farside_flavour_${name} INTERFACE FARSIDE_USE_${flavour_macro}=1
                             ${flavour_DEFINES})
  target_compile_options(farside_flavour_${name} INTERFACE ${flavour_FLAGS})
  target_link_options(farside_flavour_${name} INTERFACE ${flavour_FLAGS})
  list(APPEND farside_flavours ${name})
  if(NOT flavour_EXTRA)
    list(APPEND farside_main_flavours ${name})
  endif()
endmacro()

# Which MPI a plain `mpicxx` belongs to shows in what it links.
function(farside_is_openmpi answer candidate)
  execute_process(COMMAND ${candidate} --showme:version OUTPUT_VARIABLE out ERROR_QUIET)
  if(NOT out MATCHES "Open MPI")
    set(${answer} FALSE PARENT_SCOPE)
  endif()
endfunction()
function(farside_is_mpich answer candidate)
  execute_process(COMMAND ${candidate} -show OUTPUT_VARIABLE out ERROR_QUIET)
  if(NOT out MATCHES "-lmpich|-lmpicxx")
    set(${answer} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Their run-time libraries are a package of their own (libclang-rt-19-dev).
function(farside_has_sanitizers answer compiler)
  if(DEFINED CACHE{${answer}})
    return()
  endif()
  set(source "${PROJECT_BINARY_DIR}/CMakeFiles/sanitized.cpp")
  file(WRITE "${source}" "int main() {}\n")
  set(all TRUE)
  foreach(sanitizers address,undefined thread)
    execute_process(COMMAND "${compiler}" -fsanitize=${sanitizers} "${source}" -o "${source}.out"
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed)
      set(all FALSE)
    endif()
  endforeach()
  set(${answer} ${all} CACHE BOOL "Whether the second compiler has sanitizers")
endfunction()

if(smp IN_LIST farside_backends)
  farside_flavour(smp smp)
endif()
if(mpi IN_LIST farside_backends)
  find_program(FARSIDE_OPENMPI_CXX NAMES mpicxx.openmpi mpicxx VALIDATOR farside_is_openmpi
               DOC "Wrapper compiler of Open MPI")
  find_program(FARSIDE_MPICH_CXX NAMES mpicxx.mpich mpicxx VALIDATOR farside_is_mpich
               DOC "Wrapper compiler of MPICH")
  if(FARSIDE_OPENMPI_CXX)
    farside_ask_wrapper(farside_transport_openmpi "${FARSIDE_OPENMPI_CXX}")
    farside_flavour(openmpi mpi TRANSPORT farside_transport_openmpi)
  endif()
  if(FARSIDE_MPICH_CXX)
    farside_ask_wrapper(farside_transport_mpich "${FARSIDE_MPICH_CXX}")
    farside_flavour(mpich mpi TRANSPORT farside_transport_mpich)
  endif()
endif()
if(shmem IN_LIST farside_backends)
  farside_flavour(shmem shmem TRANSPORT farside::transport_shmem)
endif()

if(sim IN_LIST farside_backends)
  farside_flavour(sim sim EXTRA)  # tests run on it; other programs only where they ask for it
endif()

if(any IN_LIST farside_backends)
  farside_flavour(any any TRANSPORT ${CMAKE_DL_LIBS} EXTRA)
endif()

find_program(FARSIDE_CLANG_CXX NAMES clang++-19 DOC "The second compiler of the tests")
if(FARSIDE_EXTRA_FLAVOURS AND FARSIDE_BUILD_TESTS AND smp IN_LIST farside_backends)
  # -O0: with optimisation g++ takes three times as long over the same sanitized source.
  farside_flavour(smp-checked smp EXTRA FLAGS -O0 DEFINES FARSIDE_CHECKED=1)
  if(NOT FARSIDE_SANITIZE)
    farside_flavour(smp-asan smp EXTRA FLAGS -O0 -fsanitize=address,undefined
                    -fno-sanitize-recover=all -fno-omit-frame-pointer DEFINES FARSIDE_CHECKED=1)
    farside_flavour(smp-tsan smp EXTRA FLAGS -O0 -fsanitize=thread -fno-omit-frame-pointer)
  endif()
  if(FARSIDE_CLANG_CXX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    farside_flavour(smp-clang smp EXTRA FLAGS -O0)
    set(farside_clang_flavours smp-clang)
    farside_has_sanitizers(FARSIDE_CLANG_HAS_SANITIZERS "${FARSIDE_CLANG_CXX}")
    if(FARSIDE_CLANG_HAS_SANITIZERS)
      list(APPEND farside_clang_flavours smp-asan smp-tsan)
    endif()
  endif()
endif()
list(JOIN farside_flavours " " flavours_text)
message(STATUS "farside: flavours: ${flavours_text}")
