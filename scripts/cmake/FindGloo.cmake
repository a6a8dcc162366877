# Defines dt_ext::gloo, because Debian's Gloo has no CMake package.
find_path(GLOO_INCLUDE_DIR gloo/context.h)
find_library(GLOO_LIBRARY gloo)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Gloo DEFAULT_MSG GLOO_LIBRARY GLOO_INCLUDE_DIR)
add_library(dt_ext_gloo INTERFACE)
target_link_libraries(dt_ext_gloo INTERFACE ${GLOO_LIBRARY})
target_include_directories(dt_ext_gloo SYSTEM INTERFACE ${GLOO_INCLUDE_DIR})
add_library(dt_ext::gloo ALIAS dt_ext_gloo)
