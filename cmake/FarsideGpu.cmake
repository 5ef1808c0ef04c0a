# farside::gpu: what a program links, besides a back end, to have device memory and kernels on GPUs. Used by this
# project itself and, installed next to farsideConfig.cmake, by every project that asks for the component gpu.
include_guard(GLOBAL)

# farside_find_nvshmem(<library>): the host library of NVSHMEM, where it is installed or in a Python package; empty
# if there is none. Programs look for it again when they start, so that building needs none.
function(farside_find_nvshmem library)
  set(places "")
  if(DEFINED ENV{NVSHMEM_HOME})
    list(APPEND places "$ENV{NVSHMEM_HOME}/lib")
  endif()
  find_program(FARSIDE_PYTHON python3 DOC "Knows of Python packages, in which NVSHMEM may be")
  if(FARSIDE_PYTHON)
    execute_process(COMMAND "${FARSIDE_PYTHON}" -c "import nvidia.nvshmem as m; print(list(m.__path__)[0])"
                    OUTPUT_VARIABLE package OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(package)
      list(APPEND places "${package}/lib")
    endif()
  endif()
  find_file(FARSIDE_NVSHMEM_LIBRARY NAMES libnvshmem_host.so.3 libnvshmem_host.so HINTS ${places}
            PATHS /usr/local/nvshmem/lib /usr/lib/x86_64-linux-gnu/nvshmem/13 /usr/lib/aarch64-linux-gnu/nvshmem/13
            DOC "Host library of NVSHMEM, libnvshmem_host.so.3")
  set(${library} "" PARENT_SCOPE)
  if(FARSIDE_NVSHMEM_LIBRARY)
    set(${library} "${FARSIDE_NVSHMEM_LIBRARY}" PARENT_SCOPE)
  endif()
endfunction()

# farside_add_gpu(<problem>)
#
# Makes farside::gpu. Where CUDA is missing or not enabled no target is made, and the variable <problem> says what to
# do; otherwise it is empty. Sources that launch kernels are in the language CUDA, which the caller has enabled.
function(farside_add_gpu problem)
  set(${problem} "" PARENT_SCOPE)
  if(TARGET farside::gpu)
    return()
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT CUDA IN_LIST languages)
    set(${problem}
        "the language CUDA is not enabled, and kernels are compiled by nvcc. Write project(... LANGUAGES CXX CUDA), or \
enable_language(CUDA) before find_package, and configure with -DCMAKE_CUDA_ARCHITECTURES=90 or what the GPU has; it \
needs CUDA 12.4 or later"
        PARENT_SCOPE)
    return()
  endif()
  find_package(CUDAToolkit QUIET)
  if(NOT CUDAToolkit_FOUND)
    set(${problem}
        "no CUDA toolkit found. Install CUDA 12.4 or later, or say where it is: -DCUDAToolkit_ROOT=/usr/local/cuda"
        PARENT_SCOPE)
    return()
  endif()
  if(CUDAToolkit_VERSION VERSION_LESS 12.4)
    set(${problem} "CUDA ${CUDAToolkit_VERSION} is too old: C++20 and atomics of 128 bits need 12.4 or later"
        PARENT_SCOPE)
    return()
  endif()
  add_library(farside::gpu INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(farside::gpu INTERFACE FARSIDE_USE_CUDA=1)
  target_include_directories(farside::gpu SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(farside::gpu INTERFACE "${CUDAToolkit_LIBRARY_DIR}/libcudart_static.a" ${CMAKE_DL_LIBS} rt)
  # For products of matrices. Programs that multiply none do not load them.
  set(missing "")
  foreach(name cusparse cublas)
    if(TARGET CUDA::${name})
      target_link_libraries(farside::gpu INTERFACE "-Wl,--as-needed" CUDA::${name})
    else()
      list(APPEND missing ${name})
    endif()
  endforeach()
  if(missing)
    list(JOIN missing " and " missing)
    target_compile_definitions(farside::gpu INTERFACE FARSIDE_WITHOUT_CUSPARSE=1)
    message(STATUS "farside: gpu: CUDA ${CUDAToolkit_VERSION} has no ${missing} here: programs cannot multiply matrices "
                   "in device memory. Install libcusparse-dev and libcublas-dev of this CUDA.")
  endif()
  # 2189: attributes that g++ takes from a definition, and nvcc's front end only from the first declaration. 1675:
  # pragmas of g++, which it ignores. 2810: assignments to types that are [[nodiscard]], which it takes for
  # calls. 554: a conversion to const that a const type does not need.
  target_compile_options(farside::gpu INTERFACE
    "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;--expt-relaxed-constexpr;--extended-lambda;-diag-suppress=2189,1675,2810,554>")
  target_compile_features(farside::gpu INTERFACE cxx_std_20)
  farside_find_nvshmem(library)
  if(library)
    target_compile_definitions(farside::gpu INTERFACE FARSIDE_NVSHMEM_LIBRARY="${library}")
  else()
    message(STATUS "farside: gpu: no NVSHMEM found here. Programs look for it when they start (FARSIDE_NVSHMEM=).")
  endif()
endfunction()
