# dt_library(NAME SRCS … [FBS …] [DEPS …] [PRIVATE_DEPS …])  → target dt::NAME
# dt_binary(NAME SRCS … DEPS …)
# dt_test(NAME LABEL fast|sim|slow|… SRCS … DEPS … [TIMEOUT s])  one GoogleTest program = one ctest entry
# Sources are listed by name; scripts/check/tidy.py compares the lists with the files on disk.

function(dt_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;FBS;DEPS;PRIVATE_DEPS")
  add_library(dt_${name} STATIC ${arg_SRCS})
  add_library(dt::${name} ALIAS dt_${name})
  target_include_directories(dt_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(dt_${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS} dt_flags)
  foreach(fbs ${arg_FBS})
    get_filename_component(stem ${fbs} NAME_WE)
    set(out_dir ${PROJECT_BINARY_DIR}/generated/${name})
    add_custom_command(
      OUTPUT ${out_dir}/${stem}_generated.h
      COMMAND ${FLATC} --cpp --scoped-enums -o ${out_dir} ${CMAKE_CURRENT_SOURCE_DIR}/${fbs}
      DEPENDS ${fbs} VERBATIM)
    target_sources(dt_${name} PRIVATE ${out_dir}/${stem}_generated.h)
    target_include_directories(dt_${name} SYSTEM PRIVATE ${out_dir})
  endforeach()
endfunction()

function(dt_binary name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;DEPS")
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} dt_flags)
endfunction()

function(dt_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "LABEL;TIMEOUT" "SRCS;DEPS")
  dt_binary(${name} SRCS ${arg_SRCS} DEPS ${arg_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "DT_SOURCE_DIR=${PROJECT_SOURCE_DIR};DT_PROGRAM=${PROJECT_BINARY_DIR}/dovetail")
endfunction()
