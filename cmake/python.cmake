# python.cmake: the Python package: the shared library with the libraries it needs beside it, and the module that describes the
# C interface, made from the headers. scikit-build-core (pyproject.toml) installs the component `python` into the wheel.
if(NOT LAPSE_PYTHON)
  return()
endif()
find_package(Python REQUIRED COMPONENTS Interpreter)

set(interface ${CMAKE_CURRENT_BINARY_DIR}/python/_interface.py)
set(headers ${CMAKE_CURRENT_SOURCE_DIR}/include/lapse_lab.h ${CMAKE_CURRENT_SOURCE_DIR}/include/lapse.h ${CMAKE_CURRENT_SOURCE_DIR}/src/data/import/arrow_abi.h)
add_custom_command(OUTPUT ${interface} VERBATIM COMMENT "Writing the Python description of lapse.h"
  COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/python/make_interface.py ${CMAKE_C_COMPILER} ${interface} ${headers}
  DEPENDS ${headers} python/make_interface.py)

# Without a version in its name: a wheel has no symbolic links. RPATH, unlike RUNPATH, also finds the dependencies of dependencies.
add_library(lapse_python SHARED ${LAPSE_OBJECT_FILES})
target_link_libraries(lapse_python PRIVATE ${LAPSE_LIBRARIES})
set(stripped -s)
if(NOT APPLE)
  list(APPEND stripped -Wl,--disable-new-dtags)
endif()
target_link_options(lapse_python PRIVATE ${LAPSE_EXPORTS} ${stripped})
set_target_properties(lapse_python PROPERTIES OUTPUT_NAME lapse LINKER_LANGUAGE C INSTALL_RPATH "${LAPSE_ORIGIN};${LAPSE_ORIGIN}/libraries"
  INSTALL_RPATH_USE_LINK_PATH OFF LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/python
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/lapse.map)

# The options of every call, for type checkers: the library is asked. A build for another machine takes those of one for this machine.
set(LAPSE_PYTHON_OPTIONS "" CACHE FILEPATH "The module _options.py of a build that runs here, for a build that does not")
set(options ${CMAKE_CURRENT_BINARY_DIR}/python/_options.py)
if(LAPSE_PYTHON_OPTIONS)
  configure_file(${LAPSE_PYTHON_OPTIONS} ${options} COPYONLY)
else()
  add_custom_command(OUTPUT ${options} VERBATIM COMMENT "Writing the Python description of all options"
    COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/python/make_options.py $<TARGET_FILE:lapse_python> ${interface} ${options}
    DEPENDS lapse_python ${interface} python/make_options.py)
endif()
add_custom_target(python DEPENDS lapse_python ${interface} ${options})

# The tool, with the library of the package.
add_executable(lapse_python_tool ${LAPSE_CLI})
target_link_libraries(lapse_python_tool PRIVATE lapse_python lapse_flags m)
target_link_options(lapse_python_tool PRIVATE ${stripped})
target_include_directories(lapse_python_tool PRIVATE include ${CMAKE_SOURCE_DIR})
set_target_properties(lapse_python_tool PROPERTIES OUTPUT_NAME lapse INSTALL_RPATH "${LAPSE_ORIGIN};${LAPSE_ORIGIN}/libraries"
  INSTALL_RPATH_USE_LINK_PATH OFF RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/python)
add_dependencies(python lapse_python_tool)

install(TARGETS lapse_python lapse_python_tool LIBRARY DESTINATION lapse COMPONENT python RUNTIME DESTINATION lapse COMPONENT python)
install(FILES ${interface} ${options} DESTINATION lapse COMPONENT python)
if(TARGET lapse_cuda)
  add_dependencies(python lapse_cuda)
  install(TARGETS lapse_cuda LIBRARY DESTINATION lapse COMPONENT python)
endif()

# Copies every library that is not part of the C library, under the name by which it is loaded. LAPSE_BUNDLE names them where
# they cannot be found by loading, as for another machine.
set(LAPSE_BUNDLE "" CACHE STRING "The libraries to put into the wheel; empty: those that the library is linked with")
if(LAPSE_BUNDLE)
  install(FILES ${LAPSE_BUNDLE} DESTINATION lapse/libraries COMPONENT python)
  return()
endif()
install(CODE "set(library \"$<TARGET_FILE:lapse_python>\")" COMPONENT python)
install(CODE [[
  file(GET_RUNTIME_DEPENDENCIES LIBRARIES ${library} RESOLVED_DEPENDENCIES_VAR found UNRESOLVED_DEPENDENCIES_VAR missing
    PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread)\\.so")
  if(missing)
    message(FATAL_ERROR "The wheel lacks libraries: ${missing}")
  endif()
  foreach(file ${found})
    get_filename_component(name ${file} NAME)
    file(REAL_PATH ${file} real)
    file(MAKE_DIRECTORY $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lapse/libraries)
    file(COPY_FILE ${real} $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lapse/libraries/${name})
    message(STATUS "Bundled ${name}")
  endforeach()
]] COMPONENT python)
