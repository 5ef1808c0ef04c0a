# Libraries beside which bench_local_multiply measures our kernels, for FARSIDE_BENCH_PEERS. Each is a file of
# the benchmark, compiled as a user who cares for speed compiles it. Nothing else needs them.
include_guard(GLOBAL)

# farside_peer(<name> <file of the benchmark> <header> <folder of the header or empty> <library or empty>)
#
# Adds a peer to bench_local_multiply_smp where its header and its library are found, and says so.
function(farside_peer name file header suffix library)
  string(TOUPPER ${name} macro)
  find_path(FARSIDE_PEER_${macro}_INCLUDE ${header} PATH_SUFFIXES ${suffix})
  if(library)
    find_library(FARSIDE_PEER_${macro}_LIBRARY ${library})
  endif()
  if(NOT FARSIDE_PEER_${macro}_INCLUDE OR (library AND NOT FARSIDE_PEER_${macro}_LIBRARY))
    message(STATUS "farside: bench_local_multiply without ${name}: ${header} or its library was not found")
    return()
  endif()
  message(STATUS "farside: bench_local_multiply with ${name}")
  set(target bench_local_multiply_smp)
  set(source "${PROJECT_SOURCE_DIR}/benchmarks/bench_local_multiply/${file}")
  target_sources(${target} PRIVATE "${source}")
  set_source_files_properties("${source}" PROPERTIES COMPILE_OPTIONS "-O3;-march=native;-Wno-psabi")
  target_include_directories(${target} SYSTEM PRIVATE "${FARSIDE_PEER_${macro}_INCLUDE}")
  target_compile_definitions(${target} PRIVATE FARSIDE_PEER_${macro}=1)
  if(library)
    target_link_libraries(${target} PRIVATE "${FARSIDE_PEER_${macro}_LIBRARY}")
  endif()
endfunction()

if(TARGET bench_local_multiply_smp)
  farside_peer(GraphBLAS graphblas.cpp GraphBLAS.h suitesparse graphblas)
  farside_peer(Eigen eigen.cpp Eigen/SparseCore eigen3 "")
  farside_peer(BLAS blas.cpp cblas.h openblas openblas)
endif()
