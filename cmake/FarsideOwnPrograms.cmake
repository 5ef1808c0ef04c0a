# The programs that `farside NAME` starts. Each folder programs/<name> is one, of all its sources;
# programs/common holds what they share, compiled once a flavour.
include_guard(GLOBAL)

add_custom_target(programs)
find_package(ZLIB QUIET)  # reads come compressed
if(NOT ZLIB_FOUND)
  message(STATUS "farside: without the programs of programs/: no zlib found. Install it (Debian: "
                 "apt install zlib1g-dev)")
  return()
endif()

file(GLOB_RECURSE common_sources CONFIGURE_DEPENDS programs/common/*.cpp)
foreach(flavour IN LISTS farside_main_flavours)
  add_library(farside_common_${flavour} INTERFACE)
  target_include_directories(farside_common_${flavour} INTERFACE programs)
  target_link_libraries(farside_common_${flavour} INTERFACE ZLIB::ZLIB)
  if(common_sources)
    add_library(farside_common_sources_${flavour} STATIC EXCLUDE_FROM_ALL ${common_sources})
    target_include_directories(farside_common_sources_${flavour} PRIVATE programs)
    target_link_libraries(farside_common_sources_${flavour} PRIVATE farside_flavour_${flavour}
                          ZLIB::ZLIB)
    target_link_libraries(farside_common_${flavour} INTERFACE farside_common_sources_${flavour})
  endif()
endforeach()

file(GLOB folders CONFIGURE_DEPENDS programs/*)
foreach(folder IN LISTS folders)
  cmake_path(GET folder FILENAME name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  if(name STREQUAL "common" OR NOT sources)
    continue()
  endif()
  farside_program(NAME ${name} SOURCES ${sources} INSTALL)
  foreach(flavour IN LISTS farside_main_flavours)
    target_link_libraries(${name}_${flavour} PRIVATE farside_common_${flavour})
    # They take long to compile, and few changes need them all: the target `programs` builds them.
    if(NOT flavour STREQUAL "smp")
      farside_only_in_full(${name}_${flavour})
      add_dependencies(programs ${name}_${flavour})
    endif()
  endforeach()
endforeach()
