# Debian's own package file asks for OpenCL, so the library is found by path. Gives dt_ext::dnnl.
find_path(DNNL_INCLUDE_DIR dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Dnnl DEFAULT_MSG DNNL_LIBRARY DNNL_INCLUDE_DIR)
add_library(dt_ext_dnnl INTERFACE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  target_link_libraries(dt_ext_dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_CXX)
else()
  # oneDNN runs on gcc's OpenMP; another compiler's would be a second one with settings of its own.
  execute_process(COMMAND gcc -print-file-name=include OUTPUT_VARIABLE DT_GCC_INCLUDE
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  target_link_libraries(dt_ext_dnnl INTERFACE ${DNNL_LIBRARY} gomp)
  # Last, so that only omp.h is taken from there.
  target_compile_options(dt_ext_dnnl INTERFACE -idirafter ${DT_GCC_INCLUDE})
endif()
target_include_directories(dt_ext_dnnl SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
add_library(dt_ext::dnnl ALIAS dt_ext_dnnl)
