# The targets a program links: farside::smp, farside::mpi, farside::shmem, farside::sim, farside::any. Used
# by this project itself and, installed next to farsideConfig.cmake, by every project that finds the package.
include_guard(GLOBAL)

# farside_ask_wrapper(<target> <wrapper>)
#
# Makes the imported target <target> from what a wrapper compiler (mpicxx, oshc++) adds to the
# command line of the compiler that it wraps. All of them answer `-show` with that command line.
function(farside_ask_wrapper target wrapper)
  execute_process(COMMAND "${wrapper}" -show OUTPUT_VARIABLE line ERROR_VARIABLE complaint
                  RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "farside: '${wrapper} -show' should print the command line it stands for, "
                        "but ended with ${status}: ${complaint}")
  endif()
  separate_arguments(words UNIX_COMMAND "${line}")
  list(POP_FRONT words compiler)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)")
      target_include_directories(${target} SYSTEM INTERFACE "${CMAKE_MATCH_1}")
    elseif(word MATCHES "^-D(.+)")
      target_compile_definitions(${target} INTERFACE "${CMAKE_MATCH_1}")
    elseif(word MATCHES "^-L(.+)")
      target_link_directories(${target} INTERFACE "${CMAKE_MATCH_1}")
    elseif(word MATCHES "^-l" OR word MATCHES "^/.*\\.(so|a)$")
      target_link_libraries(${target} INTERFACE "${word}")
    elseif(word MATCHES "^-Wl,")
      target_link_options(${target} INTERFACE "${word}")
    elseif(word STREQUAL "-pthread")
      target_compile_options(${target} INTERFACE "${word}")
      target_link_options(${target} INTERFACE "${word}")
    endif()
  endforeach()
endfunction()

# farside_add_headers(<include dir>): farside::headers, what all back ends share.
function(farside_add_headers include_dir)
  if(TARGET farside::headers)
    return()
  endif()
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  add_library(farside::headers INTERFACE IMPORTED GLOBAL)
  target_include_directories(farside::headers INTERFACE "${include_dir}")
  target_compile_features(farside::headers INTERFACE cxx_std_20)
  target_link_libraries(farside::headers INTERFACE Threads::Threads)
  if(FARSIDE_CHECKED)
    target_compile_definitions(farside::headers INTERFACE FARSIDE_CHECKED=1)
  endif()
endfunction()

# farside_add_backend(<smp|mpi|shmem|sim|any> <include dir> <problem>)
#
# Makes farside::<backend>. Where its transport is missing no target is made, and the variable
# <problem> says what to install; otherwise it is empty.
function(farside_add_backend backend include_dir problem)
  set(${problem} "" PARENT_SCOPE)
  if(TARGET farside::${backend})
    return()
  endif()
  farside_add_headers("${include_dir}")
  set(transport "")

  if(backend STREQUAL "mpi")
    set(MPI_CXX_SKIP_MPICXX ON)
    set(found_before ${MPI_CXX_FOUND})
    find_package(MPI QUIET COMPONENTS CXX)
    if(NOT MPI_CXX_FOUND)
      set(${problem}
          "no MPI found. Install one (Debian: apt install libopenmpi-dev openmpi-bin, or libmpich-dev mpich), or give its wrapper compiler: -DMPI_CXX_COMPILER=/path/to/mpicxx"
          PARENT_SCOPE)
      return()
    endif()
    set(transport MPI::MPI_CXX)
    if(NOT found_before)
      # It would be visible in this directory only, but farside::mpi is visible everywhere.
      set_target_properties(MPI::MPI_CXX PROPERTIES IMPORTED_GLOBAL TRUE)
    endif()
  elseif(backend STREQUAL "shmem")
    find_program(FARSIDE_SHMEM_CXX NAMES oshc++ oshcxx oshCC shmemc++
                 DOC "Wrapper compiler of OpenSHMEM")
    if(NOT FARSIDE_SHMEM_CXX)
      set(${problem}
          "no OpenSHMEM found. Install one (Debian: apt install libopenmpi-dev openmpi-bin), or give its wrapper compiler: -DFARSIDE_SHMEM_CXX=/path/to/oshc++"
          PARENT_SCOPE)
      return()
    endif()
    farside_ask_wrapper(farside::transport_shmem "${FARSIDE_SHMEM_CXX}")
    set(transport farside::transport_shmem)
  elseif(backend STREQUAL "any")
    set(transport ${CMAKE_DL_LIBS})  # what carries it is found when the program starts
  elseif(NOT backend MATCHES "^(smp|sim)$")
    set(${problem} "there is no such back end. There are smp, mpi, shmem, sim and any." PARENT_SCOPE)
    return()
  endif()

  string(TOUPPER ${backend} macro)
  add_library(farside::${backend} INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(farside::${backend} INTERFACE FARSIDE_USE_${macro}=1)
  target_link_libraries(farside::${backend} INTERFACE farside::headers ${transport})
endfunction()

# farside_add_blas(<problem>)
#
# Makes farside::blas, which a program links beside a back end: dense products are then those of a BLAS, with one
# thread a rank. Where there is none no target is made, and the variable <problem> says what to install.
function(farside_add_blas problem)
  set(${problem} "" PARENT_SCOPE)
  if(TARGET farside::blas)
    return()
  endif()
  find_path(FARSIDE_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-openmp openblas-pthread
            DOC "Folder of cblas.h")
  find_library(FARSIDE_CBLAS_LIBRARY NAMES openblas blis cblas DOC "A BLAS with its C interface")
  if(NOT FARSIDE_CBLAS_INCLUDE OR NOT FARSIDE_CBLAS_LIBRARY)
    set(${problem}
        "no BLAS with cblas.h found. Install one (Debian: apt install libopenblas-dev), or give it: -DFARSIDE_CBLAS_INCLUDE=/path -DFARSIDE_CBLAS_LIBRARY=/path/libopenblas.so"
        PARENT_SCOPE)
    return()
  endif()
  add_library(farside::blas INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(farside::blas INTERFACE FARSIDE_USE_BLAS=1)
  target_include_directories(farside::blas SYSTEM INTERFACE "${FARSIDE_CBLAS_INCLUDE}")
  target_link_libraries(farside::blas INTERFACE "${FARSIDE_CBLAS_LIBRARY}")
endfunction()
