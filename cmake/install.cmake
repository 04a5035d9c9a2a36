# install.cmake: install rules for library, header, pkg-config file, tool and man page.
# The pkg-config file has a prefix relative to its own folder, so that an installed tree can be moved.
file(RELATIVE_PATH LAPSE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)

# Direct dependencies of the static library. Their own static dependencies (such as gfortran of OpenBLAS) are left out, because a
# program links them as shared libraries.
list(JOIN OPENBLAS_LDFLAGS " " openblas)
list(JOIN XXHASH_LDFLAGS " " xxhash)
set(LAPSE_PC_LIBRARIES "${openblas} ${xxhash} -lz -pthread -lm")
string(REGEX REPLACE "/$" "" LAPSE_PC_PREFIX "${LAPSE_PC_PREFIX}")
configure_file(cmake/lapse.pc.in lapse.pc @ONLY)

install(TARGETS lapse ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET lapse_shared)
  install(TARGETS lapse_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(FILES include/lapse.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_BINARY_DIR}/lapse.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET lapse_tool)
  install(TARGETS lapse_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${CMAKE_BINARY_DIR}/lapse.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
