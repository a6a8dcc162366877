# librdkafka is optional. If it is found, worker/data/kafka/topic_kafka.cc becomes a shared library,
# libdovetail_kafka.so, which the program opens when a job trains on a topic of Kafka. It links none of our libraries.
#   dt_kafka_library()   makes the library
#   DT_KAFKA             librdkafka, or OFF

set(DT_KAFKA OFF)
# librdkafka is not instrumented: ThreadSanitizer would report its threads.
if(NOT DT_WITH_KAFKA STREQUAL "OFF" AND NOT DT_SANITIZE STREQUAL "thread" AND NOT DT_FUZZ)
  find_path(DT_KAFKA_INCLUDE librdkafka/rdkafka.h)
  find_library(DT_KAFKA_LIBRARY rdkafka)
  if(DT_KAFKA_INCLUDE AND DT_KAFKA_LIBRARY)
    set(DT_KAFKA ${DT_KAFKA_LIBRARY})
  elseif(DT_WITH_KAFKA STREQUAL "ON")
    message(FATAL_ERROR "DT_WITH_KAFKA is ON and there is no librdkafka: install librdkafka-dev")
  endif()
endif()
message(STATUS "Kafka: ${DT_KAFKA}")

function(dt_kafka_library)
  if(NOT DT_KAFKA)
    return()
  endif()
  add_library(dovetail_kafka SHARED ${PROJECT_SOURCE_DIR}/worker/data/kafka/topic_kafka.cc)
  target_include_directories(dovetail_kafka PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(dovetail_kafka SYSTEM PRIVATE ${DT_KAFKA_INCLUDE})
  target_link_libraries(dovetail_kafka PRIVATE ${DT_KAFKA_LIBRARY} dt_flags)
  set_target_properties(dovetail_kafka PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    BUILD_RPATH "$ORIGIN;$ORIGIN/../lib")
  # The path also serves the libraries that librdkafka needs.
  target_link_options(dovetail_kafka PRIVATE LINKER:--no-undefined LINKER:--disable-new-dtags)
endfunction()
