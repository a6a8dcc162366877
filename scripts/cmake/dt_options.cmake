# All options of the build, and all compiler flags.

set(DT_WITH_CUDA AUTO CACHE STRING "Compile CUDA code: AUTO (where nvcc is), ON, OFF")
set(DT_WITH_ARROW AUTO CACHE STRING "Build the library for Parquet and remote files: AUTO (where pyarrow is), ON, OFF")
set(DT_WITH_KAFKA AUTO CACHE STRING "Build the library for topics of Kafka: AUTO (where librdkafka is), ON, OFF")
set(DT_SANITIZE none CACHE STRING "none, address (with undefined), thread")
option(DT_WERROR "Warnings are errors" ON)
option(DT_BUILD_TESTS "Build the tests" ON)
option(DT_FUZZ "Build libFuzzer targets (clang)" OFF)
option(DT_UNITY_BUILD "Compile up to eight sources of a library as one, and the headers of tests once" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# Programs name their sources as seen from the root of the tree. Sources of unity builds are included by their whole
# paths, so without this each clone's objects would differ, and none could come from another clone's cache.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
add_library(dt_flags INTERFACE)
# Contraction is off so that the same source gives the same bits in every function into which it is inlined. Structs of
# options are initialized by name ({.rows = 3}), so missing fields deserve no warning: they have their defaults.
target_compile_options(dt_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -ffp-contract=off -fno-math-errno
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${DT_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports overlaps in std::string that do not exist (its bug 105651). The other warnings of its optimizer are
  # checked at -O2 (preset dev), because -O3 and sanitizers only add false alarms.
  target_compile_options(dt_flags INTERFACE -Wno-restrict)
  if(NOT DT_SANITIZE STREQUAL "none" OR CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(dt_flags INTERFACE
      -Wno-maybe-uninitialized -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()
# Flags for libraries whose sources are compiled as one.
add_library(dt_unity_flags INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ takes the sources for headers, in which a member of a type without linkage would be a mistake.
  target_compile_options(dt_unity_flags INTERFACE -Wno-subobject-linkage)
  # And it inlines less in large sources, which costs 1.5 % of the speed of training DLRM.
  if(DT_SANITIZE STREQUAL "none")
    target_compile_options(dt_unity_flags INTERFACE --param=large-unit-insns=1000000)
  endif()
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  # All processes use the same instruction set, so that they compute the same bits.
  target_compile_options(dt_flags INTERFACE -march=x86-64-v3)
endif()

# For directories whose code runs seldom: it compiles in half the time.
macro(dt_compile_for_size)
  add_compile_options($<$<CONFIG:Release>:-Os>)
endmacro()

# Flags for arithmetic kernels: g++ 12 vectorizes loops of unknown length only with -O3.
add_library(dt_kernel_flags INTERFACE)
if(DT_SANITIZE STREQUAL "none")
  # With -O3, g++ 12 also warns about its own AVX-512 intrinsics (its bug 105593). Nothing looks at floating-point
  # exceptions, so loops with a product that only some elements need may be vectorised.
  target_compile_options(dt_kernel_flags INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-trapping-math $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
else()
  # What the sanitizers add is expensive to optimize: compiling takes half as long as with -O2 -g, and reports still name
  # their lines.
  add_compile_options(-O1 -g1)
endif()

if(DT_SANITIZE STREQUAL "address")
  # AddressSanitizer reports every access through a null pointer, so UBSan need not check for them, too.
  add_compile_options(
    -fsanitize=address,undefined -fno-sanitize=null -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(DT_SANITIZE STREQUAL "thread")
  # ThreadSanitizer does not support the fences that Boost uses beside its mutexes, and gcc warns about each.
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
  add_link_options(-fsanitize=thread)
elseif(NOT DT_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "DT_SANITIZE is '${DT_SANITIZE}': none, address or thread")
endif()
if(DT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
