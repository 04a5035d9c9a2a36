# Device code, where nvcc is found: src/backend/cuda/*.cu becomes a plugin that the library opens at run time, and
# tests/nvcc/*.cu checks that headers shared by host and device compile with nvcc. Nothing else depends on it.

# The interface between the library and the plugin: headers whose structures both use.
file(GLOB LAPSE_INTERFACE_HEADERS CONFIGURE_DEPENDS src/backend/*.h src/graph/*.h src/data/batch/batch_vocabulary.h src/base/random.h
  src/formula/loss.h)
set(text "")
foreach(header ${LAPSE_INTERFACE_HEADERS})
  file(READ ${header} content)
  string(APPEND text "${content}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${LAPSE_INTERFACE_HEADERS})
string(SHA256 LAPSE_INTERFACE "${text}")
string(SUBSTRING ${LAPSE_INTERFACE} 0 8 LAPSE_INTERFACE)
set(LAPSE_INTERFACE LAPSE_INTERFACE=0x${LAPSE_INTERFACE})
set_property(SOURCE src/backend/plugin.c src/backend/cuda/cuda_backend.cu APPEND PROPERTY COMPILE_DEFINITIONS ${LAPSE_INTERFACE})

file(GLOB LAPSE_CUDA_SOURCES CONFIGURE_DEPENDS src/backend/cuda/*.cu)
file(GLOB LAPSE_CUDA_CHECKS CONFIGURE_DEPENDS tests/nvcc/*.cu)
if(LAPSE_CUDA STREQUAL "AUTO" AND NOT LAPSE_CUDA_SOURCES)
  return()
elseif(NOT LAPSE_CUDA)
  return()
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(LAPSE_CUDA STREQUAL "AUTO")
    return()
  endif()
  message(FATAL_ERROR "LAPSE_CUDA is ON, but nvcc does not work here: put CUDA's bin folder on the PATH, and install g++")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 90)
  # Files with products by warpgroups (cuda_product_wide.h) are compiled for 9.0 with the instructions that only it has, and
  # without them for later devices.
  set(LAPSE_CUDA_WIDE src/backend/cuda/cuda_linear.cu src/backend/cuda/cuda_outer.cu
    src/backend/cuda/cuda_softmax_loss.cu)
endif()
foreach(architecture ${CMAKE_CUDA_ARCHITECTURES})
  if(architecture MATCHES "^[0-9]+" AND CMAKE_MATCH_0 LESS 90)
    message(FATAL_ERROR "CMAKE_CUDA_ARCHITECTURES is ${architecture}, but the plugin needs compute capability 9.0 or later: 90")
  endif()
endforeach()
set(CMAKE_CUDA_STANDARD 17)
enable_language(CUDA)

# Free of the C++ runtime, so that the plugin needs no libstdc++.
set(LAPSE_CUDA_FLAGS -Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-Wall,-Wextra --Werror=all-warnings
  --extended-lambda)

if(LAPSE_CUDA_WIDE)
  list(TRANSFORM LAPSE_CUDA_WIDE PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(REMOVE_ITEM LAPSE_CUDA_SOURCES ${LAPSE_CUDA_WIDE})
  add_library(lapse_cuda_wide OBJECT ${LAPSE_CUDA_WIDE})
  set_target_properties(lapse_cuda_wide PROPERTIES CUDA_ARCHITECTURES OFF CUDA_VISIBILITY_PRESET hidden
    POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(lapse_cuda_wide PRIVATE LP_CUDA_90A)
  target_compile_options(lapse_cuda_wide PRIVATE "SHELL:-gencode arch=compute_90a,code=sm_90a"
    "SHELL:-gencode arch=compute_90,code=compute_90")
  list(APPEND LAPSE_CUDA_SOURCES $<TARGET_OBJECTS:lapse_cuda_wide>)
endif()
if(LAPSE_CUDA_SOURCES)
  # The plugin has its own hidden copy of the library code that it needs, and exports one symbol.
  add_library(lapse_cuda MODULE ${LAPSE_CUDA_SOURCES} src/base/assert.c src/base/error.c src/base/memory.c src/base/wording.c src/base/text.c src/base/spill.c
    src/base/threads.c)
  set_target_properties(lapse_cuda PROPERTIES C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    CUDA_RUNTIME_LIBRARY Static)
  add_dependencies(product lapse_cuda)
  install(TARGETS lapse_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(LAPSE_CUDA_CHECKS)
  add_library(lapse_cuda_checks OBJECT ${LAPSE_CUDA_CHECKS})
endif()
add_custom_target(cuda)
foreach(target lapse_cuda lapse_cuda_wide lapse_cuda_checks)
  if(TARGET ${target})
    target_include_directories(${target} PRIVATE include src)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${LAPSE_CUDA_FLAGS}>)
    add_dependencies(cuda ${target})
  endif()
endforeach()
