# aarch64.cmake: toolchain file to build for 64-bit ARM with Debian's cross compiler and to run the programs under qemu
# (scripts/test_aarch64.sh). AARCH64_ROOT has the libraries of the other architecture.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/root)
set(libraries ${AARCH64_ROOT}/usr/lib/aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH ${AARCH64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${libraries}/openblas-openmp/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${AARCH64_ROOT})
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${libraries}:${libraries}/openblas-openmp")
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${CMAKE_EXE_LINKER_FLAGS_INIT})

# /usr/aarch64-linux-gnu has the C library of the cross compiler.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L /usr/aarch64-linux-gnu
  -E LD_LIBRARY_PATH=${libraries}:${libraries}/openblas-openmp)
