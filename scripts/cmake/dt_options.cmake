# Every switch of the build, and the one place where compiler flags are written.

set(DT_WITH_CUDA AUTO CACHE STRING "Compile CUDA code: AUTO (where nvcc is), ON, OFF")
set(DT_SANITIZE none CACHE STRING "none, address (with undefined), thread")
option(DT_WERROR "Warnings are errors" ON)
option(DT_BUILD_TESTS "Build the tests" ON)
option(DT_FUZZ "Build libFuzzer targets (clang)" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

add_library(dt_flags INTERFACE)
# Contraction is off so that the same source gives the same bits in every function it is inlined into. Options
# are written by name ({.rows = 3}): what is left out has its default, and is not worth a warning.
target_compile_options(dt_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${DT_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 finds overlaps in std::string that are not there (its bug 105651). What else its optimizer believes to see
  # is judged at -O2 (dev); -O3 and sanitizers only add false alarms.
  target_compile_options(dt_flags INTERFACE -Wno-restrict)
  if(NOT DT_SANITIZE STREQUAL "none" OR CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(dt_flags INTERFACE
      -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  # The workers' common instruction set: every process computes with the same one, so that bits agree.
  target_compile_options(dt_flags INTERFACE -march=x86-64-v3)
endif()

# Arithmetic kernels: g++ 12 vectorises loops of unknown length from -O3 on.
add_library(dt_kernel_flags INTERFACE)
target_compile_options(dt_kernel_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O3>)

if(DT_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(DT_SANITIZE STREQUAL "thread")
  # Fences, which Boost uses beside its mutexes, are not modelled; gcc would stop at each.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  add_link_options(-fsanitize=thread)
elseif(NOT DT_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "DT_SANITIZE is '${DT_SANITIZE}': none, address or thread")
endif()
if(DT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
