# dt_library(NAME SRCS … [FBS …] [DEPS …] [PRIVATE_DEPS …])  → target dt::NAME
# dt_binary(NAME SRCS … DEPS …)
# dt_test(NAME LABEL fast|sim|slow|… SRCS … DEPS … [TIMEOUT s] [SANITIZE address thread] [OWN_MAIN] [ARGS …])
#   one GoogleTest program = one ctest entry
# Sources are listed by name; scripts/check/tidy.py compares the lists with the files on disk.

function(dt_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;FBS;DEPS;PRIVATE_DEPS")
  add_library(dt_${name} STATIC ${arg_SRCS})
  add_library(dt::${name} ALIAS dt_${name})
  if(DT_UNITY_BUILD)
    set_target_properties(dt_${name} PROPERTIES UNITY_BUILD ON)
    target_link_libraries(dt_${name} PRIVATE dt_unity_flags)
  endif()
  target_include_directories(dt_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(dt_${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS} dt_flags)
  foreach(fbs ${arg_FBS})
    get_filename_component(stem ${fbs} NAME_WE)
    set(out_dir ${PROJECT_BINARY_DIR}/generated/${name})
    add_custom_command(
      OUTPUT ${out_dir}/${stem}_generated.h
      COMMAND ${FLATC} --cpp --cpp-std c++17 --cpp-static-reflection --scoped-enums
              -I ${PROJECT_SOURCE_DIR}/common/wire -o ${out_dir} ${CMAKE_CURRENT_SOURCE_DIR}/${fbs}
      DEPENDS ${fbs} VERBATIM)
    target_sources(dt_${name} PRIVATE ${out_dir}/${stem}_generated.h)
    target_include_directories(dt_${name} SYSTEM PUBLIC ${out_dir})
  endforeach()
endfunction()

function(dt_binary name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;DEPS")
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} dt_flags)
endfunction()

# Test directories (below test/) whose programs also run with a sanitizer every day: with AddressSanitizer those that
# read data from outside; with ThreadSanitizer those that have threads but do not use ZeroMQ, oneTBB or RocksDB, which
# Debian builds without instrumentation.
set(DT_EVERYDAY_address "^(unit|property)/(server|table|common/(base|wire|plan|config)|worker/data)(/|$)")
set(DT_EVERYDAY_thread "^unit/(common/(base|control)|server/shard|worker/client)(/|$)")
set(DT_PREFIX_address asan)
set(DT_PREFIX_thread tsan)

# The target test_headers: the headers that most tests include, compiled once for all of them.
function(dt_test_headers)
  if(TARGET test_headers)
    return()
  endif()
  set(main ${PROJECT_BINARY_DIR}/generated/test_headers.cc)
  file(CONFIGURE OUTPUT ${main} CONTENT "int main() {}\n")
  dt_binary(test_headers SRCS ${main} DEPS GTest::gtest GTest::gmock)
  target_precompile_headers(test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>
    <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span> <string> <thread> <vector>)
  target_compile_options(test_headers PRIVATE -fpch-preprocess)
endfunction()

# In a sanitizer build the label says which run of scripts/test.sh uses the test: asan (tsan) for the directories above
# and for SANITIZE address (thread), asan-full (tsan-full) for all others.
function(dt_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OWN_MAIN" "LABEL;TIMEOUT" "SRCS;DEPS;SANITIZE;ARGS")
  if(NOT arg_OWN_MAIN)
    list(APPEND arg_DEPS GTest::gtest_main)
  endif()
  dt_binary(${name} SRCS ${arg_SRCS} DEPS ${arg_DEPS} GTest::gtest GTest::gmock)
  if($CACHE{DT_UNITY_BUILD})
    dt_test_headers()
    target_precompile_headers(${name} REUSE_FROM test_headers)
    target_compile_options(${name} PRIVATE -fpch-preprocess)  # ccache needs it.
  endif()
  if(DT_UNITY_BUILD)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
    target_link_libraries(${name} PRIVATE dt_unity_flags)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  set(test_name ${name})
  if(NOT DT_SANITIZE STREQUAL "none")
    set(prefix ${DT_PREFIX_${DT_SANITIZE}})
    set(test_name ${prefix}.${name})
    math(EXPR arg_TIMEOUT "4 * ${arg_TIMEOUT}")
    file(RELATIVE_PATH dir ${PROJECT_SOURCE_DIR}/test ${CMAKE_CURRENT_SOURCE_DIR})
    if(dir MATCHES "${DT_EVERYDAY_${DT_SANITIZE}}" OR "${DT_SANITIZE}" IN_LIST arg_SANITIZE)
      set(arg_LABEL ${prefix})
      add_dependencies(${prefix}_tests ${name})
    else()
      set(arg_LABEL ${prefix}-full)
    endif()
  endif()
  add_test(NAME ${test_name} COMMAND ${name} ${arg_ARGS})
  set(supp ${PROJECT_SOURCE_DIR}/scripts/sanitizers)
  set_tests_properties(${test_name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "DT_SOURCE_DIR=${PROJECT_SOURCE_DIR};DT_PROGRAM=${PROJECT_BINARY_DIR}/dovetail;\
ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1;\
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1;LSAN_OPTIONS=suppressions=${supp}/lsan.supp;\
TSAN_OPTIONS=suppressions=${supp}/tsan.supp:halt_on_error=1:second_deadlock_stack=1")
endfunction()

# dt_fuzz(NAME SRCS … DEPS …): a program with LLVMFuzzerTestOneInput and initial inputs in test/fuzz/corpus/NAME. With
# DT_FUZZ, libFuzzer searches for a minute, starting from them (label fuzz); otherwise they and seeded mutations of them
# are replayed (labels fast, asan).
function(dt_fuzz name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;DEPS")
  set(given ${PROJECT_SOURCE_DIR}/test/fuzz/corpus/${name})
  if(NOT DT_FUZZ)
    dt_test(${name} LABEL fast TIMEOUT 120 SANITIZE address OWN_MAIN
      SRCS ${arg_SRCS} ${PROJECT_SOURCE_DIR}/test/fuzz/replay_main.cc
      DEPS ${arg_DEPS} dt::common_base ARGS ${given} 4000)
    return()
  endif()
  dt_binary(${name} SRCS ${arg_SRCS} DEPS ${arg_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  # libFuzzer writes new inputs to the first directory.
  set(found ${CMAKE_CURRENT_BINARY_DIR}/corpus_${name})
  file(MAKE_DIRECTORY ${found})
  add_test(NAME fuzz.${name} COMMAND ${name} -max_total_time=60 -timeout=10 -rss_limit_mb=2048
    -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}- ${found} ${given})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 180)
  add_dependencies(fuzz_tests ${name})
endfunction()

# Compiles every header that has no source of the same name, which proves that it compiles alone.
function(dt_check_headers)
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
    common/*.h ops/*.h scheduler/*.h server/*.h worker/*.h cli/*.h test/*.h)
  set(sources)
  foreach(header ${headers})
    string(REGEX REPLACE "\\.h$" ".cc" twin ${header})
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${twin})
      set(source ${PROJECT_BINARY_DIR}/generated/headers/${twin})
      file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n")
      list(APPEND sources ${source})
    endif()
  endforeach()
  add_library(dt_headers OBJECT EXCLUDE_FROM_ALL ${sources})
  target_include_directories(dt_headers PRIVATE ${PROJECT_SOURCE_DIR})
  # common_wire is needed because one of its headers includes a generated file.
  target_link_libraries(dt_headers PRIVATE dt_flags dt::common_wire)
endfunction()
