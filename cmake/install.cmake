# What `cmake --install build` puts where: library, header, pkg-config file, tool, manual.
# The file finds its prefix from where it lies, so an installed tree may be moved.
file(RELATIVE_PATH LAPSE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
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
