# Defines dt_ext::dnnl. Debian's CMake package requires OpenCL, so the library is found by its path.
find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Dnnl DEFAULT_MSG DNNL_LIBRARY DNNL_INCLUDE_DIR)
add_library(dt_ext_dnnl INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(dt_ext_dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)
else()
  # oneDNN uses gcc's OpenMP; that of another compiler would be a second runtime with separate settings.
  execute_process(COMMAND gcc -print-file-name=include OUTPUT_VARIABLE DT_GCC_INCLUDE
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  target_link_libraries(dt_ext_dnnl INTERFACE ${DNNL_LIBRARY} gomp)
  # This directory is searched last, so that only omp.h is taken from it.
  target_compile_options(dt_ext_dnnl INTERFACE -idirafter ${DT_GCC_INCLUDE})
endif()
target_include_directories(dt_ext_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
add_library(dt_ext::dnnl ALIAS dt_ext_dnnl)
