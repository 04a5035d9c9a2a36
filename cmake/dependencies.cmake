# What Lapse stands on. All of it is looked for before anything is refused, so that one line names all that is missing.
set(LAPSE_MISSING "")

find_package(PkgConfig QUIET)
if(NOT PKG_CONFIG_FOUND)
  message(FATAL_ERROR "Lapse needs pkg-config, gcc, OpenBLAS, jansson, zlib and xxhash. On Debian and Ubuntu:\n"
    "  sudo apt-get install -y gcc pkg-config libopenblas-openmp-dev libjansson-dev zlib1g-dev libxxhash-dev")
endif()

# need_module(PREFIX module package): the imported target PkgConfig::PREFIX.
macro(need_module prefix module package)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET ${module})
  if(NOT ${prefix}_FOUND)
    list(APPEND LAPSE_MISSING ${package})
  endif()
endmacro()
need_module(OPENBLAS openblas libopenblas-openmp-dev)
need_module(JANSSON jansson libjansson-dev)
need_module(XXHASH libxxhash libxxhash-dev)

find_package(ZLIB QUIET)
if(NOT ZLIB_FOUND)
  list(APPEND LAPSE_MISSING zlib1g-dev)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

if(LAPSE_MISSING)
  list(JOIN LAPSE_MISSING " " packages)
  message(FATAL_ERROR "Lapse cannot be built: a library it needs is missing. On Debian and Ubuntu:\n"
    "  sudo apt-get install -y ${packages}")
endif()

# Only the tests need cmocka: without it they are not built.
pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
