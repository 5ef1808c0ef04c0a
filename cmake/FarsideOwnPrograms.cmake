# The programs that `farside NAME` starts. Each folder programs/<name> is one, of all its sources. What
# they share is compiled once a flavour: programs/common, and programs/common/genome for those that
# read sequences. What they share with `farside` and the benchmarks is in toolkit/.
include_guard(GLOBAL)

add_custom_target(programs)
add_dependencies(programs carriers)
find_package(ZLIB QUIET)  # reads and matrices come compressed
if(NOT ZLIB_FOUND)
  message(STATUS "farside: without kmers, contigs, simulate, matrix and multiply: no zlib found. Install it (Debian: "
                 "apt install zlib1g-dev)")
endif()

# One program for all back ends, where there are several: on smp it takes the same time as one for smp alone.
set(farside_program_flavours any)
if(NOT any IN_LIST farside_flavours)
  set(farside_program_flavours ${farside_main_flavours})
endif()

foreach(flavour IN LISTS farside_program_flavours)
  foreach(part common common/genome common/matrices)
    string(REPLACE "/" "_" name ${part})
    file(GLOB sources CONFIGURE_DEPENDS programs/${part}/*.cpp)
    add_library(farside_${name}_${flavour} STATIC EXCLUDE_FROM_ALL ${sources})
    target_include_directories(farside_${name}_${flavour} PRIVATE programs "${PROJECT_SOURCE_DIR}")
    target_link_libraries(farside_${name}_${flavour} PRIVATE farside_flavour_${flavour})
    if(FARSIDE_QUICK_PROGRAMS)
      farside_compile_quickly(farside_${name}_${flavour} ${flavour})
    endif()
  endforeach()
  target_link_libraries(farside_common_genome_${flavour} PUBLIC farside_common_${flavour})
  target_link_libraries(farside_common_matrices_${flavour} PUBLIC farside_common_genome_${flavour})
  if(ZLIB_FOUND)
    target_link_libraries(farside_common_genome_${flavour} PUBLIC ZLIB::ZLIB)
  endif()
endforeach()

# farside_own_program(<name> [<part>]): part is what it shares, common, common_genome or common_matrices.
function(farside_own_program name)
  file(GLOB sources CONFIGURE_DEPENDS programs/${name}/*.cpp)
  if(name STREQUAL "demo")  # whose test computes for longer than optimising it takes
    set(farside_quickly "")
  endif()
  farside_program(NAME ${name} SOURCES ${sources} FLAVOURS ${farside_program_flavours} INSTALL ${farside_quickly})
  foreach(flavour IN LISTS farside_program_flavours)
    target_include_directories(${name}_${flavour} PRIVATE programs "${PROJECT_SOURCE_DIR}")
    set_target_properties(${name}_${flavour} PROPERTIES UNITY_BUILD ON)  # half the time
    foreach(part IN LISTS ARGN)
      target_link_libraries(${name}_${flavour} PRIVATE farside_${part}_${flavour})
    endforeach()
    add_dependencies(programs ${name}_${flavour})
  endforeach()
endfunction()

farside_own_program(demo)
farside_own_program(sort common)
farside_own_program(wavelets common)
foreach(name triangles spmv scf)
  farside_own_program(${name} common)
endforeach()
if(ZLIB_FOUND)
  foreach(name kmers contigs simulate)
    farside_own_program(${name} common_genome)
  endforeach()
  farside_own_program(matrix common_matrices)
  farside_own_program(multiply common_matrices)
  if(FARSIDE_WITH_BLAS)
    farside_add_blas(farside_blas_problem)
    if(NOT TARGET farside::blas)
      message(FATAL_ERROR "farside: FARSIDE_WITH_BLAS: ${farside_blas_problem}")
    endif()
    foreach(flavour IN LISTS farside_program_flavours)
      target_link_libraries(multiply_${flavour} PRIVATE farside::blas)
    endforeach()
  endif()
  if(FARSIDE_GPU)  # `farside kmers --device`, `farside multiply --device`
    set_source_files_properties(programs/kmers/count_device.cpp programs/multiply/on_device.cpp
                                PROPERTIES LANGUAGE CUDA)
    foreach(flavour IN LISTS farside_program_flavours)
      target_link_libraries(kmers_${flavour} PRIVATE farside::gpu)
      target_link_libraries(multiply_${flavour} PRIVATE farside::gpu)
    endforeach()
  endif()
endif()
