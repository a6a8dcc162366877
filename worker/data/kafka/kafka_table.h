// The interface of libdovetail_kafka.so: one C function that fills a table of functions, which read
// the messages of a Kafka topic by partition and offset. Program and library are both compiled with
// this file; the version detects a library of another build. Plain data only.
//
// No exception leaves the library.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dt::worker {

inline constexpr uint32_t kKafkaTableVersion = 1;
inline constexpr const char* kKafkaTableSymbol = "DtFillKafkaTable";

enum class KafkaCode : uint8_t {
  kOk,
  kInvalid,      // A setting or a partition that does not exist.
  kNotFound,     // The topic does not exist.
  kDeleted,      // The offset is not there any more, or not yet.
  kUnavailable,  // The brokers cannot be reached, or refuse.
};

// `text` is in thread-local memory, valid until the thread's next call.
struct KafkaError {
  KafkaCode code = KafkaCode::kOk;
  const char* text = "";
};

struct KafkaSetting {  // As in librdkafka's CONFIGURATION.md.
  const char *name = "", *value = "";
};

struct KafkaMessage {
  uint64_t offset = 0;
  int64_t time_ms = 0;  // When it was written, since 1970; 0: unknown.
  const char* bytes = nullptr;
  size_t size = 0;
};

struct KafkaMessages {
  const KafkaMessage* messages = nullptr;
  size_t count = 0;
  // Not 0: the partition had no message from here on, nor between the last one and here.
  uint64_t end = 0;
};

struct KafkaTopic;  // A topic and the connections to its brokers. One thread at a time.

struct KafkaTable {
  uint32_t version = 0;

  // Does not connect yet.
  KafkaError (*open)(const char* brokers, const char* topic, const KafkaSetting* settings,
                     size_t setting_count, KafkaTopic** out) = nullptr;
  void (*close)(KafkaTopic* topic) = nullptr;

  KafkaError (*partitions)(KafkaTopic* topic, int timeout_ms, uint32_t* count) = nullptr;
  // The offset of the first message that is still there, and the one after the last.
  KafkaError (*range)(KafkaTopic* topic, uint32_t partition, int timeout_ms, uint64_t* first,
                      uint64_t* end) = nullptr;
  // Goes on reading a partition at this offset.
  KafkaError (*seek)(KafkaTopic* topic, uint32_t partition, uint64_t offset) = nullptr;
  // The next messages of a partition, in ascending order of their offsets, which need not follow
  // each other: transactions and compaction leave gaps. There are none if the timeout passes, or
  // if the end of the partition is reached. They are valid until the next call for this topic.
  KafkaError (*next)(KafkaTopic* topic, uint32_t partition, int timeout_ms, size_t count_max,
                     KafkaMessages* out) = nullptr;
};

// The type of the library's only entry point. Returns false if the library was built for another
// version of the table.
using FillKafkaTable = bool (*)(uint32_t version, KafkaTable* table);

}  // namespace dt::worker
