# dependencies.cmake: finds the required libraries. The error names all missing packages at once.
set(LAPSE_MISSING "")

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "Lapse needs pkg-config, gcc, OpenBLAS, zlib and xxhash. On Debian and Ubuntu:\n"
    "  sudo apt-get install -y gcc pkg-config libopenblas-openmp-dev zlib1g-dev libxxhash-dev")
endif()

# need_module(PREFIX module package): defines the imported target PkgConfig::PREFIX.
macro(need_module prefix module package)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    list(APPEND LAPSE_MISSING ${package})
  endif()
endmacro()
need_module(OPENBLAS openblas libopenblas-openmp-dev)
need_module(XXHASH libxxhash libxxhash-dev)

find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  list(APPEND LAPSE_MISSING zlib1g-dev)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(LAPSE_MISSING)
  list(JOIN LAPSE_MISSING " " packages)
  message(FATAL_ERROR "Lapse cannot be built: required libraries are missing. On Debian and Ubuntu:\n"
    "  sudo apt-get install -y ${packages}")
endif()

# Only the tests require cmocka, and only they and the server jansson: without it they are not built.
pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
pkg_check_modules(JANSSON QUIET IMPORTED_TARGET jansson)

# The server (server/) needs these; without them `lapse serve` says what to install.
pkg_check_modules(MICROHTTPD QUIET IMPORTED_TARGET libmicrohttpd gnutls)
pkg_check_modules(SQLITE QUIET IMPORTED_TARGET sqlite3)
pkg_check_modules(POSTGRES QUIET IMPORTED_TARGET libpq)
set(LAPSE_WITH_SERVER OFF)
if(MICROHTTPD_FOUND AND SQLITE_FOUND AND JANSSON_FOUND AND LAPSE_SERVER AND NOT APPLE)
  set(LAPSE_WITH_SERVER ON)
endif()
