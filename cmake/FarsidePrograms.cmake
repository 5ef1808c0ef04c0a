# farside_program() builds a program once per flavour; farside_rank_test() runs it on many ranks.
include_guard(GLOBAL)

# farside_program(NAME name SOURCES source... [FLAVOURS flavour...] [CLANG flavour...] [QUICKLY] [INSTALL])
#
# Builds <name>_<flavour> for each flavour given that this build has; with none given, for smp,
# openmpi, mpich and shmem. CLANG: those that the second compiler, if there is one, compiles as well as it
# does its own flavours. QUICKLY: that compiler, without optimisation, for all of them. INSTALL: the main ones,
# and those for any back end, go to libexec/farside, where `farside` looks.
function(farside_program)
  cmake_parse_arguments(arg "INSTALL;QUICKLY" "NAME" "SOURCES;FLAVOURS;CLANG" ${ARGN})
  if(NOT arg_FLAVOURS)
    set(arg_FLAVOURS ${farside_main_flavours})
  endif()
  if(arg_QUICKLY)
    set(arg_CLANG ${arg_FLAVOURS})
  endif()
  foreach(flavour IN LISTS arg_FLAVOURS)
    if(NOT flavour IN_LIST farside_flavours)
      continue()
    endif()
    set(target ${arg_NAME}_${flavour})
    add_executable(${target} ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE farside_flavour_${flavour})
    farside_compiled_by_clang(by_clang ${flavour} ${arg_CLANG})
    if(by_clang)
      farside_compile_with_clang(${target})
    endif()
    if(arg_QUICKLY)
      farside_above_precompiled(${target} ${flavour} ${by_clang})
    endif()
    if(flavour STREQUAL "any")
      add_dependencies(${target} carriers)
    endif()
    if(arg_INSTALL AND FARSIDE_INSTALL AND (flavour IN_LIST farside_main_flavours OR flavour STREQUAL "any"))
      install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/farside OPTIONAL)
    endif()
  endforeach()
endfunction()

# farside_compiled_by_clang(<variable> <flavour> [flavour...]): whether the second compiler compiles that flavour,
# which is so where there is one and the flavour is one of its own or of those given.
function(farside_compiled_by_clang variable flavour)
  set(answer OFF)
  if(FARSIDE_CLANG_CXX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
     AND (flavour IN_LIST farside_clang_flavours OR flavour IN_LIST ARGN))
    set(answer ON)
  endif()
  set(${variable} ${answer} PARENT_SCOPE)
endfunction()

function(farside_compile_with_clang target)
  set(instead "${PROJECT_SOURCE_DIR}/cmake/compile_with;${FARSIDE_CLANG_CXX}")
  set_target_properties(${target} PROPERTIES
                        CXX_COMPILER_LAUNCHER "${instead};${CCACHE_PROGRAM};--"
                        CXX_LINKER_LAUNCHER "${instead};--")
  # On arm64 the older way to choose instructions takes three quarters of the time.
  target_compile_options(${target} PRIVATE -fno-global-isel)
endfunction()

# farside_above_precompiled(<target> <flavour> <by_clang>): without optimisation, and where the second compiler compiles
# it, on top of the precompiled library. Other flavours have so few programs that precompiling takes longer than it saves.
set(farside_precompiled_flavours any smp sim smp-asan)
function(farside_above_precompiled target flavour by_clang)
  target_compile_options(${target} PRIVATE -O0 -g0)
  if(by_clang AND flavour IN_LIST farside_precompiled_flavours)
    farside_precompile(${flavour})
    target_precompile_headers(${target} REUSE_FROM precompiled_${flavour})
  endif()
endfunction()

# farside_compile_quickly(<target> <flavour>): what QUICKLY does, for a target that is no program.
function(farside_compile_quickly target flavour)
  farside_compiled_by_clang(by_clang ${flavour} ${flavour})
  if(by_clang)
    farside_compile_with_clang(${target})
  endif()
  farside_above_precompiled(${target} ${flavour} ${by_clang})
endfunction()

# farside_precompile(<flavour>): <farside/farside.hpp> as programs compiled QUICKLY begin with it, as the library
# precompiled_<flavour>. It is found where CMake puts those of g++.
function(farside_precompile flavour)
  set(target precompiled_${flavour})
  if(TARGET ${target})
    return()
  endif()
  set(source "${PROJECT_BINARY_DIR}/CMakeFiles/nothing.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "// Its header is what is compiled.\n")
  add_library(${target} OBJECT EXCLUDE_FROM_ALL "${source}")
  target_link_libraries(${target} PRIVATE farside_flavour_${flavour})
  farside_compile_with_clang(${target})
  target_compile_options(${target} PRIVATE -O0 -g0 -fpch-instantiate-templates "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${target} PRIVATE <farside/farside.hpp>)
endfunction()

# farside_only_in_full(<target>): the default build leaves it out, as it takes long to compile and few changes
# need it. The target `full` builds all of them, and their rank tests are full ones.
add_custom_target(full)
function(farside_only_in_full target)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(full ${target})
endfunction()

# How each test flavour runs: the flavour it is built as, and the rank counts of the quick matrix.
# The full matrix is 1 2 3 4 7 for each back end; for the strategies and other ways through an MPI, and for the
# sanitizers, it is shorter.
#
# In the quick matrix each way through an MPI comes once or twice a suite, mostly with Open MPI: ranks that wait in
# MPICH use a core, and the containers take ten times as long there. A flavour without quick ranks is left to the
# full tests.
set(farside_full_ranks 1 2 3 4 7)
set(farside_quick_ranks 2 3)
set(farside_quick_ranks_smp 1 2 3 4 7)
set(farside_quick_ranks_smp-threads 2 3 4 7)
foreach(flavour openmpi-rma mpich-rma openmpi-strict mpich-strict)
  set(farside_full_ranks_${flavour} 2 3)
endforeach()
foreach(flavour smp-asan smp-tsan)
  set(farside_full_ranks_${flavour} 1 2 3)
endforeach()
set(farside_quick_ranks_openmpi 3)
set(farside_quick_ranks_mpich 2)
set(farside_quick_ranks_shmem 3)
set(farside_built_as_smp-threads smp)
foreach(built smp openmpi mpich shmem smp-tsan)
  set(farside_built_as_${built}-attentive ${built})
endforeach()
set(farside_built_as_openmpi-rma openmpi)
set(farside_quick_ranks_openmpi-rma 3)
set(farside_built_as_mpich-rma mpich)
set(farside_quick_ranks_mpich-rma 2)
set(farside_built_as_openmpi-strict openmpi)
set(farside_quick_ranks_openmpi-strict 2)
set(farside_built_as_mpich-strict mpich)
set(farside_quick_ranks_mpich-strict "")
# With an MPI that does everything as late as it may (tests/late_mpi). MPICH's flush does not yield, and what we do
# about that comes too early there: no more ranks than cores.
foreach(mpi openmpi mpich)
  set(farside_built_as_${mpi}-late ${mpi})
  set(farside_full_ranks_${mpi}-late 2)
endforeach()
set(farside_full_ranks_openmpi-late 2 3)
set(farside_quick_ranks_openmpi-late 2)
set(farside_quick_ranks_mpich-late "")
# Strategies of the mpi back end (docs/mpi_progress.md). Debian's MPICH cannot spawn.
set(farside_strategy_flavours "")
foreach(strategy two_sided progress_thread progress_rank spawned)
  foreach(mpi openmpi mpich)
    if(NOT "${mpi}-${strategy}" STREQUAL "mpich-spawned")
      list(APPEND farside_strategy_flavours ${mpi}-${strategy})
      set(farside_built_as_${mpi}-${strategy} ${mpi})
      set(farside_quick_ranks_${mpi}-${strategy} "")
      set(farside_full_ranks_${mpi}-${strategy} 2 3)  # 4 across hosts: hosts.suites
    endif()
  endforeach()
endforeach()
foreach(flavour openmpi-two_sided mpich-progress_thread openmpi-progress_rank openmpi-spawned)
  set(farside_quick_ranks_${flavour} 2)
endforeach()
set(farside_all_test_flavours
    smp smp-threads openmpi openmpi-rma openmpi-strict openmpi-late mpich mpich-rma mpich-strict mpich-late
    ${farside_strategy_flavours} shmem sim smp-asan smp-tsan smp-checked smp-clang)

# farside_rank_test(SUITE suite PROGRAM name
#                   [FLAVOURS test flavour...] [RANKS n...] [ARGS arg...] [TIMEOUT seconds]
#                   [ENVIRONMENT NAME=value...])
#
# Registers a test <suite>.<flavour>.n<N> for each test flavour that name was built for, each
# running `farside run -n N name_flavour ARGS`. RANKS replaces the matrix, and all are quick then, if
# the program is built by default. What was not built for a flavour alone, but for any back end, runs as
# `farside run --backend ...`; where it was built for it alone, but only in full, that is a full test
# <suite>.alone.<flavour>.n<N> more.
# After TIMEOUT (default 120) `farside` ends the job and shows every rank's stack.
function(farside_rank_test)
  cmake_parse_arguments(arg "ALONE" "SUITE;PROGRAM;TIMEOUT" "FLAVOURS;RANKS;ARGS;ENVIRONMENT" ${ARGN})
  set(also_alone "")
  if(NOT arg_FLAVOURS)
    set(arg_FLAVOURS ${farside_all_test_flavours})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  foreach(flavour IN LISTS arg_FLAVOURS)
    set(built_as ${flavour})
    if(DEFINED farside_built_as_${flavour})
      set(built_as ${farside_built_as_${flavour}})
    endif()
    set(program ${arg_PROGRAM}_${built_as})
    set(options "")
    set(alone "")
    if(NOT arg_ALONE AND TARGET ${arg_PROGRAM}_any AND built_as MATCHES "^(smp|openmpi|mpich|shmem|sim)$"
       AND built_as IN_LIST farside_flavours)
      set(left_out ON)
      if(TARGET ${program})
        get_target_property(left_out ${program} EXCLUDE_FROM_ALL)
      endif()
      if(left_out)
        if(TARGET ${program} AND flavour MATCHES "^(${built_as}(-rma)?|openmpi-late)$")
          list(APPEND also_alone ${flavour})
        endif()
        set(program ${arg_PROGRAM}_any)
        set(options --backend ${built_as})
      endif()
    endif()
    if(NOT TARGET ${program})
      continue()
    endif()
    if(arg_ALONE)
      set(alone .alone)
    endif()
    if(flavour MATCHES "^smp-(threads|tsan)")
      list(APPEND options --threads)
    endif()
    set(environment "UBSAN_OPTIONS=print_stacktrace=1" "TSAN_OPTIONS=halt_on_error=1"
                    ${arg_ENVIRONMENT})
    if(flavour MATCHES "-late$")
      list(APPEND options --env LD_PRELOAD=$<TARGET_FILE:late_${built_as}>)
    endif()
    if(flavour MATCHES "-(rma|late)$")
      list(APPEND environment FARSIDE_MPI_SHARED=0)
    elseif(flavour MATCHES "-strict$")
      list(APPEND environment FARSIDE_MPI_STRICT=1)
    elseif(flavour MATCHES "-attentive$")
      list(APPEND environment FARSIDE_ATTENTION=thread)
    endif()

    set(quick ${farside_quick_ranks})
    set(full ${farside_full_ranks})
    if(DEFINED farside_full_ranks_${flavour})
      set(full ${farside_full_ranks_${flavour}})
    endif()
    if(DEFINED farside_quick_ranks_${flavour})
      set(quick ${farside_quick_ranks_${flavour}})
    endif()
    if(arg_RANKS)
      set(quick ${arg_RANKS})
      set(full ${arg_RANKS})
    endif()
    get_target_property(left_out ${program} EXCLUDE_FROM_ALL)
    if(left_out)
      set(quick "")
    endif()
    foreach(ranks IN LISTS full)
      set(test ${arg_SUITE}${alone}.${flavour}.n${ranks})
      add_test(NAME ${test}
               COMMAND farside run -n ${ranks} ${options} --timeout ${arg_TIMEOUT}
                       $<TARGET_FILE:${program}> ${arg_ARGS})
      # Looking for leaks costs 4 s of CPU per process with g++-12 on arm64: once is enough.
      set(leaks 0)
      if(ranks EQUAL 2)
        set(leaks 1)
      endif()
      set(how ${environment})
      if(flavour IN_LIST farside_strategy_flavours)
        farside_strategy_environment(strategy ${flavour} ${ranks})
        list(APPEND how ${strategy})
      endif()
      set(processors ${ranks})
      if(processors GREATER 2)  # some sleep while others run: room for a test beside them
        set(processors 2)
      endif()
      farside_test_properties(${test} PROCESSORS ${processors} TIMEOUT ${arg_TIMEOUT}
                              ENVIRONMENT ${how} ASAN_OPTIONS=detect_leaks=${leaks})
      if(NOT ranks IN_LIST quick)
        set_tests_properties(${test} PROPERTIES LABELS full)
      endif()
    endforeach()
  endforeach()
  if(also_alone)
    farside_rank_test(ALONE SUITE ${arg_SUITE} PROGRAM ${arg_PROGRAM} TIMEOUT ${arg_TIMEOUT}
                      FLAVOURS ${also_alone} RANKS 3 ARGS ${arg_ARGS} ENVIRONMENT ${arg_ENVIRONMENT})
  endif()
endfunction()

# farside_strategy_environment(<variable> <flavour> <ranks>): 3 ranks run as if on two nodes, 2 on
# the first and 1 on the second, so that both ways are taken, shared memory and messages; all others
# send messages only. Who serves needs a core, too: containers do a fourth of what they do elsewhere.
function(farside_strategy_environment variable flavour ranks)
  string(REGEX REPLACE "^[a-z]+-" "" strategy ${flavour})
  set(how FARSIDE_MPI_SHARED=0)
  if(ranks EQUAL 3)
    set(how FARSIDE_MPI_NODE_RANKS=2)
    if(strategy STREQUAL "progress_rank")
      set(how FARSIDE_MPI_NODE_RANKS=3)  # and one that serves
    endif()
  endif()
  set(${variable} FARSIDE_MPI=${strategy} FARSIDE_TEST_SHARE=4 ${how} PARENT_SCOPE)
endfunction()

# farside_test_properties(<test> [PROCESSORS n] [TIMEOUT seconds] [ENVIRONMENT NAME=value...])
#
# What every test has: the labels quick and full, and a time after which ctest kills it, later
# than the one after which `farside` would have explained what hangs.
function(farside_test_properties test)
  cmake_parse_arguments(arg "" "PROCESSORS;TIMEOUT" "ENVIRONMENT" ${ARGN})
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 1)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  math(EXPR limit "${arg_TIMEOUT} + 60")
  # Those that leave a core idle while they wait go first, beside others that do not.
  set(cost 0)
  if(arg_PROCESSORS EQUAL 2)
    set(cost 10)
  endif()
  set_tests_properties(${test} PROPERTIES LABELS "quick;full" PROCESSORS ${arg_PROCESSORS}
                       TIMEOUT ${limit} COST ${cost} ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

# farside_flavour_flags(<variable> <flavour>): the command-line flags that compile a source file
# for a flavour, for tests that call a compiler themselves.
function(farside_flavour_flags variable flavour)
  set(target farside_flavour_${flavour})
  set(flags -std=c++20 -Wall -Wextra -Werror "-I${farside_include_dir}")
  get_target_property(defines ${target} INTERFACE_COMPILE_DEFINITIONS)
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  foreach(define IN LISTS defines)
    list(APPEND flags -D${define})
  endforeach()
  foreach(library IN LISTS libraries)
    if(library MATCHES "transport")
      get_target_property(folders ${library} INTERFACE_INCLUDE_DIRECTORIES)
      foreach(folder IN LISTS folders)
        list(APPEND flags -isystem "${folder}")
      endforeach()
    endif()
  endforeach()
  set(${variable} ${flags} PARENT_SCOPE)
endfunction()
