# The shared libraries that carry programs which are built for any back end, farside_<transport>.so: one for
# each transport of this build. They lie beside `farside`, which tells those programs which one to load.
include_guard(GLOBAL)

add_custom_target(carriers)
if(NOT any IN_LIST farside_backends)
  return()
endif()

# farside_carrier(<name> <source> [<transport target>])
function(farside_carrier name source)
  set(target farside_carrier_${name})
  add_library(${target} MODULE "${PROJECT_SOURCE_DIR}/src/carriers/${source}")
  target_link_libraries(${target} PRIVATE farside_flavour_any ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME farside_${name}
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  add_dependencies(carriers ${target})
  if(FARSIDE_INSTALL)
    install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/farside OPTIONAL)
  endif()
endfunction()

if(openmpi IN_LIST farside_flavours)
  farside_carrier(openmpi mpi.cpp farside_transport_openmpi)
endif()
if(mpich IN_LIST farside_flavours)
  farside_carrier(mpich mpi.cpp farside_transport_mpich)
endif()
if(shmem IN_LIST farside_flavours)
  farside_carrier(shmem shmem.cpp farside::transport_shmem)
endif()
if(sim IN_LIST farside_flavours)
  farside_carrier(sim sim.cpp)
endif()
