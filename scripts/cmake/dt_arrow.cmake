# Arrow C++ is optional. Debian 12 does not have it, but the Python package pyarrow holds its headers and libraries. If
# they are found, worker/data/arrow becomes one shared library, libdovetail_arrow.so, which reads Parquet and the file
# systems s3://, gs:// and hdfs://. The program opens it when a job asks for one of these. It links none of our
# libraries.
#   DT_PYARROW           the folder of the package, if it is neither in build/python (scripts/setup.sh) nor where python3
#                        finds it
#   dt_arrow_library()   makes the library; the program is not complete without it
#   DT_PYTHON            the Python that has the package
#   dt_test_with_arrow(NAME)   puts the library beside a test's program, and tells it DT_PYTHON

set(DT_ARROW OFF)
set(DT_PYARROW "" CACHE PATH "The folder of the Python package pyarrow")
# Arrow is not instrumented: ThreadSanitizer would report its threads, and clang's libFuzzer cannot be in a library.
if(NOT DT_WITH_ARROW STREQUAL "OFF" AND NOT DT_SANITIZE STREQUAL "thread" AND NOT DT_FUZZ)
  set(folders ${DT_PYARROW})
  if(NOT DT_PYARROW)
    file(GLOB folders ${PROJECT_SOURCE_DIR}/build/python/lib/python3*/site-packages/pyarrow)
    execute_process(COMMAND python3 -c "import pyarrow; print(pyarrow.__path__[0], end='')"
      OUTPUT_VARIABLE installed ERROR_QUIET)
    list(APPEND folders ${installed})
  endif()
  foreach(folder ${folders})
    file(GLOB arrow ${folder}/libarrow.so.*)
    file(GLOB parquet ${folder}/libparquet.so.*)
    if(arrow AND parquet AND EXISTS ${folder}/include/arrow/api.h AND NOT DT_ARROW)
      # Older versions have S3 in libarrow.
      file(GLOB s3 ${folder}/libarrow_s3.so.*)
      set(DT_ARROW ${folder})
      set(DT_ARROW_LIBRARIES ${arrow} ${parquet} ${s3})
    endif()
  endforeach()
  if(NOT DT_ARROW AND DT_WITH_ARROW STREQUAL "ON")
    message(FATAL_ERROR "DT_WITH_ARROW is ON and there is no pyarrow: pip install pyarrow, and set DT_PYARROW to its folder")
  endif()
endif()
message(STATUS "Arrow: ${DT_ARROW}")

# In a virtual environment, the package is in lib/python3.x/site-packages.
set(DT_PYTHON python3)
get_filename_component(environment ${DT_ARROW}/../../../.. ABSOLUTE)
if(DT_ARROW AND EXISTS ${environment}/pyvenv.cfg)
  set(DT_PYTHON ${environment}/bin/python3)
endif()

function(dt_arrow_library)
  if(NOT DT_ARROW)
    return()
  endif()
  add_library(dovetail_arrow SHARED
    ${PROJECT_SOURCE_DIR}/worker/data/arrow/parts_arrow.cc
    ${PROJECT_SOURCE_DIR}/worker/data/arrow/parquet_arrow.cc
    ${PROJECT_SOURCE_DIR}/worker/data/arrow/files_arrow.cc)
  target_include_directories(dovetail_arrow PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(dovetail_arrow SYSTEM PRIVATE ${DT_ARROW}/include)
  target_link_libraries(dovetail_arrow PRIVATE ${DT_ARROW_LIBRARIES} dt_flags)
  set_target_properties(dovetail_arrow PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    BUILD_RPATH "$ORIGIN;$ORIGIN/../lib;${DT_ARROW}")
  target_link_options(dovetail_arrow PRIVATE LINKER:--no-undefined)
  if(TARGET dovetail)
    add_dependencies(dovetail dovetail_arrow)
  endif()
endfunction()

function(dt_test_with_arrow name)
  if(NOT TARGET dovetail_arrow)
    return()
  endif()
  target_compile_definitions(${name} PRIVATE DT_PYTHON="${DT_PYTHON}")
  add_dependencies(${name} dovetail_arrow)
  add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
    $<TARGET_FILE:dovetail_arrow> $<TARGET_FILE_DIR:${name}>/libdovetail_arrow.so)
endfunction()
