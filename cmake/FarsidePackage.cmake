# Installation: headers, the CMake package, documents and examples, and (where they are built) the programs.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(farside_package_dir "${CMAKE_INSTALL_DATADIR}/cmake/farside")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/farsideConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/farsideConfig.cmake"
  INSTALL_DESTINATION "${farside_package_dir}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Headers only: the same package serves every architecture.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/farsideConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/farside"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(FILES "${PROJECT_BINARY_DIR}/farsideConfig.cmake"
              "${PROJECT_BINARY_DIR}/farsideConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FarsideTargets.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FarsideGpu.cmake"
        DESTINATION "${farside_package_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
# As in the source tree, so that links between them hold.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}"
        FILES_MATCHING PATTERN "*.md" PATTERN "*.svg")
install(FILES "${PROJECT_SOURCE_DIR}/README.md" "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}" FILES_MATCHING PATTERN "*.cpp")
