# install.cmake: install rules for library, header, pkg-config files, tool and man page.
# The pkg-config files have a prefix relative to their own folder, so that an installed tree can be moved.
file(RELATIVE_PATH LAPSE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" LAPSE_PC_PREFIX "${LAPSE_PC_PREFIX}")

# Of two libraries in one folder, the linker takes the shared one. So the archive has a folder of its own, LIBDIR/lapse, which
# `pkg-config --static` names first: lapse.pc has the folder as a private flag, and requires lapse-library.pc, whose flags come
# after its own.
#
# Dependencies of the static library. Of the dependencies of OpenBLAS itself, a program that is linked with `cc -static` needs
# OpenMP alone, if this OpenBLAS uses it; gfortran, which OpenBLAS names too, need not be installed.
list(JOIN OPENBLAS_LDFLAGS " " openblas)
list(JOIN XXHASH_LDFLAGS " " xxhash)
set(dependencies "${openblas} ${xxhash} -lz")
if("gomp" IN_LIST OPENBLAS_STATIC_LIBRARIES)
  string(APPEND dependencies " -lgomp")
endif()
foreach(library ${CMAKE_DL_LIBS})
  string(APPEND dependencies " -l${library}")
endforeach()
string(APPEND dependencies " -pthread -lm")
if(TARGET lapse_shared)
  set(LAPSE_PC_LIBS "-L\${libdir} -llapse")
  set(LAPSE_PC_LIBS_PRIVATE "${dependencies}")
else()
  set(LAPSE_PC_LIBS "-L\${libdir}/lapse -llapse ${dependencies}")
  set(LAPSE_PC_LIBS_PRIVATE "")
endif()
foreach(name lapse lapse-library)
  configure_file(cmake/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()

# find_package(lapse) of CMake: the targets lapse::lapse and lapse::static.
include(CMakePackageConfigHelpers)
set(library ${CMAKE_SHARED_LIBRARY_PREFIX}lapse${CMAKE_SHARED_LIBRARY_SUFFIX})
if(NOT TARGET lapse_shared)
  set(library "")
endif()
configure_package_config_file(cmake/lapse-config.cmake.in lapse-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lapse PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(lapse-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lapse-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/lapse-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/lapse COMPONENT dev)

install(TARGETS lapse ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/lapse COMPONENT dev)
if(TARGET lapse_shared)
  install(TARGETS lapse_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
endif()
install(FILES include/lapse.h include/lapse_lab.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
if(TARGET lapse_tool)
  install(TARGETS lapse_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  install(FILES ${CMAKE_BINARY_DIR}/lapse.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
  install(FILES ${CMAKE_BINARY_DIR}/lapse.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME lapse
    COMPONENT runtime)
  if(LAPSE_WITH_SERVER)
    # The unit names the tool where it is installed.
    file(READ examples/lapse.service unit)
    string(REPLACE "/usr/local/bin/" "${CMAKE_INSTALL_FULL_BINDIR}/" unit "${unit}")
    file(CONFIGURE OUTPUT lapse.service CONTENT "${unit}" @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/lapse.service DESTINATION lib/systemd/system COMPONENT server)
  endif()
endif()
