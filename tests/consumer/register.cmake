# The consumer, a project of its own, against the installed tree: configured, built and run as
# tests. Included by tests/CMakeLists.txt.
if(NOT FARSIDE_INSTALL)
  return()
endif()
set(stage "${PROJECT_BINARY_DIR}/stage")
set(stage_program "${stage}/${CMAKE_INSTALL_BINDIR}/farside")
add_test(NAME consumer.install
         COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/consumer/stage" "${PROJECT_BINARY_DIR}" "${stage}")
farside_test_properties(consumer.install)
set_tests_properties(consumer.install PROPERTIES FIXTURES_SETUP stage)

# Documents, manual pages and completions.
if(TARGET manual AND TARGET programs AND ZLIB_FOUND)
  add_test(NAME consumer.documents
           COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/consumer/documents" "${stage_program}" "${stage}/${CMAKE_INSTALL_DOCDIR}"
                   "${stage}/${CMAKE_INSTALL_MANDIR}" "${stage}/${CMAKE_INSTALL_DATADIR}")
  farside_test_properties(consumer.documents)
  set_tests_properties(consumer.documents PROPERTIES FIXTURES_REQUIRED stage)
endif()

# farside_consumer(<test> COMPILER c++ BACKEND backend [OPTIONS -D...])
#
# Tests: <test>.build and <test>.run.
function(farside_consumer test)
  cmake_parse_arguments(arg "" "COMPILER;BACKEND" "OPTIONS" ${ARGN})
  # Some warnings come with optimisation only: the first compiler sees smp with it here, and the others where they
  # are built into what carries programs for any back end.
  set(type "")
  if(test MATCHES "^consumer\\.smp\\." AND arg_COMPILER STREQUAL CMAKE_CXX_COMPILER)
    set(type RelWithDebInfo)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${test}")
  add_test(NAME ${test}.build
           COMMAND "${CMAKE_CTEST_COMMAND}"
                   --build-and-test "${CMAKE_CURRENT_SOURCE_DIR}/consumer" "${folder}"
                   --build-generator Ninja --build-makeprogram "${CMAKE_MAKE_PROGRAM}"
                   --build-options --fresh "-DCMAKE_PREFIX_PATH=${stage}"
                   "-DCMAKE_CXX_COMPILER=${arg_COMPILER}" -DCMAKE_BUILD_TYPE=${type}
                   "-DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE_PROGRAM}"
                   -DCONSUMER_BACKEND=${arg_BACKEND} ${arg_OPTIONS})
  add_test(NAME ${test}.run
           COMMAND "${stage_program}" run -n 3 --timeout 60 "${folder}/consumer" 3)
  farside_test_properties(${test}.build)
  farside_test_properties(${test}.run PROCESSORS 3 TIMEOUT 60)
  set_tests_properties(${test}.build PROPERTIES FIXTURES_SETUP ${test} FIXTURES_REQUIRED stage)
  set_tests_properties(${test}.run PROPERTIES FIXTURES_REQUIRED "stage;${test}")
endfunction()

if(NOT CMAKE_GENERATOR STREQUAL "Ninja")
  return()
endif()

foreach(compiler IN LISTS farside_compilers)
  set(path "${farside_compiler_${compiler}}")
  if(smp IN_LIST farside_flavours)
    farside_consumer(consumer.smp.${compiler} COMPILER "${path}" BACKEND smp)
    if(NOT compiler STREQUAL farside_first_compiler)
      set_tests_properties(consumer.smp.${compiler}.build consumer.smp.${compiler}.run PROPERTIES LABELS full)
    endif()
  endif()
  if(shmem IN_LIST farside_flavours AND compiler STREQUAL farside_first_compiler)
    farside_consumer(consumer.shmem.${compiler} COMPILER "${path}" BACKEND shmem)
    set_tests_properties(consumer.shmem.${compiler}.build consumer.shmem.${compiler}.run PROPERTIES LABELS full)
  endif()
  foreach(mpi openmpi mpich)
    if(NOT mpi IN_LIST farside_flavours OR (mpi STREQUAL "mpich" AND NOT compiler STREQUAL farside_first_compiler))
      continue()
    endif()
    string(TOUPPER ${mpi} upper)
    set(test consumer.${mpi}.${compiler})
    farside_consumer(${test} COMPILER "${path}" BACKEND mpi
                     OPTIONS "-DMPI_CXX_COMPILER=${FARSIDE_${upper}_CXX}")

    # An MPI program with Farside in one part of it, under the MPI's own launcher and under ours.
    cmake_path(GET FARSIDE_${upper}_CXX PARENT_PATH bin)
    find_program(FARSIDE_${upper}_RUN NAMES mpirun.${mpi} mpirun HINTS "${bin}"
                 DOC "Launcher of ${mpi}")
    set(embedded "${CMAKE_CURRENT_BINARY_DIR}/${test}/embedded")
    set(options "")
    if(mpi STREQUAL "openmpi")
      set(options --allow-run-as-root --oversubscribe)
    endif()
    add_test(NAME ${test}.embedded.mpirun
             COMMAND "${FARSIDE_${upper}_RUN}" ${options} -n 4 "${embedded}" 4)
    add_test(NAME ${test}.embedded.farside
             COMMAND "${stage_program}" run -n 4 --timeout 60 "${embedded}" 4)
    foreach(launcher mpirun farside)
      farside_test_properties(${test}.embedded.${launcher} PROCESSORS 4 TIMEOUT 60)
      set_tests_properties(${test}.embedded.${launcher} PROPERTIES
                           FIXTURES_REQUIRED "stage;${test}")
    endforeach()
    # Every day `embedded` does, without the package.
    set_tests_properties(${test}.build ${test}.run ${test}.embedded.mpirun ${test}.embedded.farside
                         PROPERTIES LABELS full)
  endforeach()
endforeach()

if(smp IN_LIST farside_flavours)
  if(any IN_LIST farside_flavours)
    farside_consumer(consumer.any COMPILER "${CMAKE_CXX_COMPILER}" BACKEND any)
    # The installed `farside` finds what carries it by each back end.
    foreach(carrier openmpi mpich shmem sim)
      if(NOT carrier IN_LIST farside_flavours)
        continue()
      endif()
      set(test consumer.any.run.${carrier})
      set(ranks 3)
      if(carrier STREQUAL "sim")  # makes its far::runtime in main, which is for one simulated rank
        set(ranks 1)
      endif()
      add_test(NAME ${test} COMMAND "${stage_program}" run -n ${ranks} --backend ${carrier} --timeout 60
                                    "${CMAKE_CURRENT_BINARY_DIR}/consumer.any/consumer" ${ranks})
      farside_test_properties(${test} PROCESSORS 3 TIMEOUT 60)
      set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED "stage;consumer.any")
    endforeach()
  endif()
  farside_consumer(consumer.subproject COMPILER "${CMAKE_CXX_COMPILER}" BACKEND smp
                   OPTIONS "-DCONSUMER_SUBPROJECT=${PROJECT_SOURCE_DIR}")
endif()

# A program of ARMCI with what the installed farside-armci-config says.
foreach(mpi openmpi mpich)
  if(TARGET farside_armci_${mpi}_static)
    add_test(NAME consumer.armci.${mpi} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/consumer/armci" "${stage}" ${mpi}
             "${CMAKE_CURRENT_SOURCE_DIR}/armci" "${CMAKE_CURRENT_BINARY_DIR}/consumer.armci.${mpi}")
    farside_test_properties(consumer.armci.${mpi} PROCESSORS 2)
    set_tests_properties(consumer.armci.${mpi} PROPERTIES FIXTURES_REQUIRED stage)
  endif()
endforeach()

# A back end that is not there is refused with what to install.
function(farside_consumer_refused test message)
  add_test(NAME consumer.refused.${test}
           COMMAND "${CMAKE_COMMAND}" --fresh -G Ninja -S "${CMAKE_CURRENT_SOURCE_DIR}/consumer"
                   -B "${CMAKE_CURRENT_BINARY_DIR}/consumer.refused.${test}"
                   "-DCMAKE_PREFIX_PATH=${stage}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
                   "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}" ${ARGN})
  farside_test_properties(consumer.refused.${test})
  set_tests_properties(consumer.refused.${test} PROPERTIES FIXTURES_REQUIRED stage
                       PASS_REGULAR_EXPRESSION "${message}")
endfunction()
farside_consumer_refused(mpi "no MPI found. *Install one .*libopenmpi-dev"
                         -DCONSUMER_BACKEND=mpi -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON)
farside_consumer_refused(shmem "no OpenSHMEM found. *Install one .*libopenmpi-dev"
                         -DCONSUMER_BACKEND=shmem -DFARSIDE_SHMEM_CXX=FARSIDE_SHMEM_CXX-NOTFOUND
                         -DCMAKE_FIND_ROOT_PATH=/nowhere -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY)
farside_consumer_refused(gpu "CUDA is not enabled.*LANGUAGES *CXX CUDA.*CMAKE_CUDA_ARCHITECTURES"
                         -DCONSUMER_BACKEND=gpu)
farside_consumer_refused(unknown "there is no such back end" -DCONSUMER_BACKEND=carrier_pigeon)
