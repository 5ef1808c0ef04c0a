# Manual pages and completions of bash and zsh, made of what the programs that have been built say with --help.
include_guard(GLOBAL)

if(NOT TARGET farside)
  return()
endif()
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(STATUS "farside: without manual pages and completions: no python3 found. Install it (Debian: apt install python3)")
  return()
endif()
set(manual "${PROJECT_BINARY_DIR}/manual")
set(needed farside)
if(TARGET programs)
  list(APPEND needed programs)
endif()
add_custom_target(manual ALL
                  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${manual}"
                  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/manual" $<TARGET_FILE:farside>
                          "${PROJECT_VERSION}" "${manual}"
                  COMMENT "Manual pages and completions" VERBATIM)
add_dependencies(manual ${needed})
install(DIRECTORY "${manual}/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL)
install(DIRECTORY "${manual}/bash/" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" OPTIONAL)
install(DIRECTORY "${manual}/zsh/" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" OPTIONAL)
