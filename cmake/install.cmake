# What `cmake --install build` puts where: library, header, pkg-config file, tool, manual.
# The file finds its prefix from where it lies, so an installed tree may be moved.
file(RELATIVE_PATH LAPSE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)

# What the static library needs itself, and not what its needs would need to be static too: that a distribution's OpenBLAS
# was made with gfortran is no concern of a program that links it shared.
list(JOIN OPENBLAS_LDFLAGS " " openblas)
list(JOIN JANSSON_LDFLAGS " " jansson)
list(JOIN XXHASH_LDFLAGS " " xxhash)
set(LAPSE_PC_LIBRARIES "${openblas} ${jansson} ${xxhash} -lz -pthread -lm")
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
