# tests.cmake: programs that are not installed: unit tests, fuzz targets and their replays, benchmarks.
if(NOT JANSSON_FOUND)
  message(STATUS "Tests and fuzz targets are not built: they need jansson (Debian: libjansson-dev)")
  return()
endif()

enable_testing()

# The CUDA plugin compiled as C++ for the CPU (tests/emulate), so that it is tested without a GPU. Each file has a wrapper, because
# CMake assigns one language to a .cu file in a folder, and that may be CUDA. Not with sanitizers: most
# tests of it are skipped there, because they run fibers, and it takes minutes to build.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER AND CMOCKA_FOUND AND NOT LAPSE_FUZZ AND NOT LAPSE_SANITIZE)
  set(CMAKE_CXX_STANDARD 17)
  enable_language(CXX)
  file(GLOB LAPSE_EMULATED_SOURCES CONFIGURE_DEPENDS src/backend/cuda/*.cu)
  set(wrappers "")
  foreach(source ${LAPSE_EMULATED_SOURCES})
    get_filename_component(name ${source} NAME_WE)
    file(CONFIGURE OUTPUT emulated/${name}.cpp CONTENT "#include \"backend/cuda/${name}.cu\"\n")
    list(APPEND wrappers ${CMAKE_CURRENT_BINARY_DIR}/emulated/${name}.cpp)
  endforeach()
  set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/emulated/cuda_backend.cpp APPEND PROPERTY COMPILE_DEFINITIONS ${LAPSE_INTERFACE})
  set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/emulated/cuda_device.cpp APPEND PROPERTY COMPILE_DEFINITIONS LP_CUDA_CODE=90)
  add_library(lapse_cuda_emulated MODULE ${wrappers} tests/emulate/emulate.cpp src/base/assert.c src/base/error.c
    src/base/spill.c src/base/system_linux.c src/base/text.c src/base/wording.c
    src/base/memory.c src/base/threads.c)
  set_target_properties(lapse_cuda_emulated PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden)
  # The reduction kernels without the rest of the plugin, for group sizes that occur in no graph.
  add_library(lapse_reduction_emulated STATIC ${CMAKE_CURRENT_BINARY_DIR}/emulated/cuda_reduction.cpp
    ${CMAKE_CURRENT_BINARY_DIR}/emulated/cuda_device.cpp
    ${CMAKE_CURRENT_BINARY_DIR}/emulated/cuda_reduction_kernel.cpp ${CMAKE_CURRENT_BINARY_DIR}/emulated/cuda_outer.cpp
    ${CMAKE_CURRENT_BINARY_DIR}/emulated/cuda_rules.cpp tests/emulate/emulate.cpp tests/emulate/emulate_reduction.cpp)
  foreach(emulated lapse_cuda_emulated lapse_reduction_emulated)
    target_include_directories(${emulated} PRIVATE include src tests tests/emulate)
    target_compile_options(${emulated} PRIVATE -O2 -g1 -Wall -Wextra -Wno-unknown-pragmas -fno-exceptions $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>
      -ffp-contract=off -U_FORTIFY_SOURCE # fibers jump between stacks
      # Devices do not support misaligned vectors, and do not report an index beyond a register's or a shared array.
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=alignment,bounds -fno-sanitize-recover=all>)
    target_link_options(${emulated} PUBLIC -fsanitize=undefined)
    if(LAPSE_WERROR)
      target_compile_options(${emulated} PRIVATE -Werror)
    endif()
  endforeach()
endif()

# Unit tests: one program per tests/unit/test_*.c; tests/support has the shared code.
if(CMOCKA_FOUND AND NOT LAPSE_FUZZ)
  file(GLOB LAPSE_TESTS CONFIGURE_DEPENDS tests/unit/test_*.c)
  file(GLOB LAPSE_TEST_SUPPORT CONFIGURE_DEPENDS tests/support/*.c)
  set(LAPSE_TEST_LIBRARIES "")
  if(LAPSE_TEST_SUPPORT)
    add_library(lapse_test_support STATIC ${LAPSE_TEST_SUPPORT})
    target_include_directories(lapse_test_support PRIVATE include src tests)
    target_link_libraries(lapse_test_support PRIVATE lapse_flags PkgConfig::CMOCKA PkgConfig::JANSSON Threads::Threads)
    set(LAPSE_TEST_LIBRARIES lapse_test_support)
  endif()
  if(NOT TARGET lapse_cuda_emulated)
    list(FILTER LAPSE_TESTS EXCLUDE REGEX "/test_cuda")
  endif()
  foreach(source ${LAPSE_TESTS})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    if(name MATCHES "^test_(cuda|recurrent|op_golden|few_targets)" AND TARGET lapse_cuda_emulated)
      target_compile_definitions(${name} PRIVATE LAPSE_EMULATED="$<TARGET_FILE:lapse_cuda_emulated>")
      add_dependencies(${name} lapse_cuda_emulated)
    endif()
    target_include_directories(${name} PRIVATE include src tests)
    target_link_libraries(${name} PRIVATE ${LAPSE_TEST_LIBRARIES} lapse lapse_flags PkgConfig::CMOCKA PkgConfig::JANSSON Threads::Threads m)
    if(NOT name STREQUAL "test_allocations") # it replaces the functions of the C library itself
      target_link_options(${name} PRIVATE -Wl,--wrap=aligned_alloc -Wl,--wrap=realloc -Wl,--wrap=free
        -Wl,--wrap=lp_alloc -Wl,--wrap=lp_alloc_raw -Wl,--wrap=lp_alloc_small_pages -Wl,--wrap=lp_free_large -Wl,--undefined=__wrap_realloc)
    endif()
    if(name STREQUAL "test_bar")
      target_sources(${name} PRIVATE cli/bar.c cli/console.c)
      target_include_directories(${name} PRIVATE .)
      target_link_options(${name} PRIVATE -Wl,--wrap=cli_clock -Wl,--wrap=cli_width)
    endif()
    if(name STREQUAL "test_file")
      target_link_options(${name} PRIVATE -Wl,--wrap=lp_system_open_unnamed)
    endif()
    if(name STREQUAL "test_cuda_reduction")
      target_link_libraries(${name} PRIVATE lapse_reduction_emulated)
    endif()
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endforeach()
endif()

# Failure injection: the tool in a program that replaces functions of the C library (glibc) and calls the tool's main function.
if(LAPSE_CLI AND NOT LAPSE_FUZZ AND NOT LAPSE_SANITIZE MATCHES thread AND CMAKE_SYSTEM_NAME STREQUAL Linux)
  file(GLOB LAPSE_FAULTS CONFIGURE_DEPENDS tests/faults/*.c)
  set(cli ${LAPSE_CLI})
  list(FILTER cli EXCLUDE REGEX "/main\\.c$") # included by fault_main.c
  add_executable(faults ${LAPSE_FAULTS} ${cli})
  if(LAPSE_SANITIZE MATCHES address)
    # Its functions are called before the sanitizer is initialized.
    set_source_files_properties(tests/faults/fault_calls.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=all
      COMPILE_DEFINITIONS LP_FAULT_SANITIZED)
  endif()
  target_include_directories(faults PRIVATE . include src tests)
  target_link_libraries(faults PRIVATE lapse lapse_flags Threads::Threads ${CMAKE_DL_LIBS} m)
  target_link_options(faults PRIVATE -Wl,--wrap=lapse_simulate_options_default -Wl,--wrap=lapse_train
    -Wl,--wrap=lp_bench_peak)
endif()

# Fuzz targets: one program per tests/fuzz/fuzz_*.c. Without libFuzzer the same code replays given files, so that every build can
# test the corpus.
file(GLOB LAPSE_FUZZERS CONFIGURE_DEPENDS tests/fuzz/fuzz_*.c)
file(GLOB LAPSE_FUZZ_SUPPORT CONFIGURE_DEPENDS tests/fuzz/support/*.c)
add_library(lapse_fuzz_support STATIC ${LAPSE_FUZZ_SUPPORT})
target_include_directories(lapse_fuzz_support PRIVATE include src tests)
target_link_libraries(lapse_fuzz_support PRIVATE lapse_flags PkgConfig::JANSSON PkgConfig::XXHASH)
# Mutators are not what is tested: their coverage would mislead the fuzzer, and slow it down.
set_target_properties(lapse_fuzz_support PROPERTIES LAPSE_NO_INSTRUMENTATION ON)
foreach(source ${LAPSE_FUZZERS})
  get_filename_component(name ${source} NAME_WE)
  if(LAPSE_FUZZ)
    add_executable(${name} ${source})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  else()
    add_executable(${name} ${source} tests/fuzz/replay.c)
  endif()
  target_include_directories(${name} PRIVATE include src tests)
  target_link_libraries(${name} PRIVATE lapse_fuzz_support lapse lapse_flags m)
  target_link_options(${name} PRIVATE -Wl,--wrap=lp_map_open -Wl,--wrap=lp_map_close -Wl,--undefined=__wrap_lp_map_open)
endforeach()

# Benchmarks: one program per bench/*.c. They are built with the tests, so that compile errors are found.
file(GLOB LAPSE_BENCHES CONFIGURE_DEPENDS bench/*.c)
add_custom_target(bench)
foreach(source ${LAPSE_BENCHES})
  get_filename_component(name ${source} NAME_WE)
  add_executable(bench_${name} ${source})
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  target_include_directories(bench_${name} PRIVATE include src)
  target_link_libraries(bench_${name} PRIVATE lapse lapse_flags Threads::Threads PkgConfig::OPENBLAS m)
  add_dependencies(bench bench_${name})
endforeach()

# Programs that need a GPU: built with the tests, so that compile errors are found, and run by hand (scripts/device_build.sh).
if(TARGET lapse_test_support)
  file(GLOB LAPSE_DEVICE_PROGRAMS CONFIGURE_DEPENDS tests/device/*.c)
  foreach(source ${LAPSE_DEVICE_PROGRAMS})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE include src tests)
    target_link_libraries(${name} PRIVATE lapse_test_support lapse lapse_flags PkgConfig::CMOCKA Threads::Threads m)
  endforeach()
endif()
