// Opens libdovetail_kafka.so while the program runs, so that the program needs no librdkafka.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "worker/data/kafka/kafka_table.h"

namespace dt::worker {

// Immutable once open; any thread. The library stays loaded until the process ends, so copies are
// cheap and functions from the table stay valid.
class KafkaLibrary {
 public:
  // The path next to the running program: <its directory>/libdovetail_kafka.so.
  static std::string DefaultPath();

  // Opening it again is cheap. Unavailable: the file is absent (a build without librdkafka), cannot
  // be loaded, or is from another build; the message says which, and the hint what brings it.
  static Result<KafkaLibrary> Open(const std::string& path = DefaultPath());

  const KafkaTable* operator->() const { return &table_; }

 private:
  explicit KafkaLibrary(const KafkaTable& table) : table_(table) {}
  KafkaTable table_;
};

// The error of a call as "<subject>: <text>"; OK if there is none.
Status ToStatus(const KafkaError& error, std::string_view subject);

}  // namespace dt::worker
