# CUDA is optional. If nvcc is available, all .cu files become one shared library, libdovetail_cuda.so. The program
# opens it at first use, so the same program runs with and without a driver. It links none of our libraries. The CUDA
# runtime is linked into it. cuBLASLt (half a gigabyte) is a shared library, searched beside it, in a package's lib, then
# in the toolkit.
#   dt_cuda_sources(a_cuda.cu …)  adds source files of a directory
#   dt_cuda_library()             makes the library from all of them; call it once, at the end

set(DT_CUDA OFF)
if(NOT DT_WITH_CUDA STREQUAL "OFF")
  find_program(DT_NVCC nvcc HINTS ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda/bin)
  if(DT_NVCC)
    set(CMAKE_CUDA_COMPILER ${DT_NVCC} CACHE FILEPATH "")
    set(CMAKE_CUDA_ARCHITECTURES 90 CACHE STRING "The cards to compile for")
    if(DT_WITH_CUDA STREQUAL "ON")
      enable_language(CUDA)
      set(DT_CUDA ON)
    else()
      # An nvcc that cannot compile counts as absent.
      include(CheckLanguage)
      check_language(CUDA)
      if(CMAKE_CUDA_COMPILER)
        enable_language(CUDA)
        set(DT_CUDA ON)
      endif()
    endif()
  elseif(DT_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DT_WITH_CUDA is ON and nvcc is neither in PATH nor in /usr/local/cuda/bin")
  endif()
endif()
if(DT_CUDA)
  find_package(CUDAToolkit)
  if(NOT TARGET CUDA::cublasLt)
    if(DT_WITH_CUDA STREQUAL "ON")
      message(FATAL_ERROR "DT_WITH_CUDA is ON and the CUDA toolkit of ${DT_NVCC} has no cuBLASLt (libcublas-dev)")
    endif()
    message(STATUS "CUDA: the toolkit of ${DT_NVCC} has no cuBLASLt (libcublas-dev)")
    set(DT_CUDA OFF)
  endif()
endif()
if(DT_CUDA AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  # CMake 3.25 does not know that nvcc supports C++20 since version 12.0.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
endif()
message(STATUS "CUDA: ${DT_CUDA}")

function(dt_cuda_sources)
  foreach(source ${ARGN})
    set_property(GLOBAL APPEND PROPERTY DT_CUDA_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
  endforeach()
endfunction()

function(dt_cuda_library)
  get_property(sources GLOBAL PROPERTY DT_CUDA_SOURCES)
  if(NOT DT_CUDA OR NOT sources)
    return()
  endif()
  add_library(dovetail_cuda SHARED ${sources})
  target_include_directories(dovetail_cuda PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(dovetail_cuda PRIVATE -Xcompiler=-Wall,-Wextra,-Wshadow --fmad=false
    $<$<BOOL:${DT_WERROR}>:-Werror=all-warnings>)
  set_target_properties(dovetail_cuda PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} CUDA_RUNTIME_LIBRARY Static
    CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_libraries(dovetail_cuda PRIVATE CUDA::cublasLt)
  set_target_properties(dovetail_cuda PROPERTIES
    BUILD_RPATH "$ORIGIN;$ORIGIN/../lib;${CUDAToolkit_LIBRARY_DIR}")
  # The CUDA runtime's symbols are hidden, so they cannot be mixed with another CUDA runtime in the process.
  target_link_options(dovetail_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined)
endfunction()
