// Reads the messages of a Kafka topic by partition and offset, through brokers that may be away for
// a while. Used by one thread at a time.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "worker/data/kafka/kafka_library.h"

namespace dt::worker {

struct OffsetRange {
  uint64_t first = 0, end = 0;
  uint64_t size() const { return end - first; }
  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

class KafkaReader {
 public:
  struct Options {
    std::string brokers, topic;
    std::vector<std::pair<std::string, std::string>> settings = {};  // Of librdkafka.
    Duration patience = seconds(60);  // How long brokers may be away.
    std::string library = KafkaLibrary::DefaultPath();
    // Called while it waits; not OK ends the wait.
    std::function<Status()> interrupted = [] { return OkStatus(); };
    const Clock* clock = &SystemClock();
  };
  // Does not connect yet. Errors: those of the library; Invalid, if there is no such setting.
  static Result<std::unique_ptr<KafkaReader>> Open(Options options);

  // All calls: Unavailable, if the brokers were away for longer than `patience`; the status that
  // interrupted it.

  // How many partitions the topic has. NotFound: there is no such topic.
  Result<uint32_t> Partitions();
  // The messages that a partition has now. While brokers are away it may take longer than
  // `patience`; Partitions does not.
  Result<OffsetRange> Range(uint32_t partition);
  // Calls `take` for the messages of a partition with these offsets, in ascending order. Offsets
  // without a message are passed over. Waits until all are there. Reading on where it ended is
  // cheap. Errors: Malformed, if an offset is there no more; those of `take`.
  struct Message {
    uint64_t offset = 0;
    double written = 0;  // Seconds since 1970; 0: unknown.
    std::string text;
  };
  using Take = std::function<Status(const Message& message)>;
  Status Read(uint32_t partition, OffsetRange offsets, const Take& take);

 private:
  struct Partition {
    std::optional<uint64_t> at;  // Where the last Read ended; empty: it failed, or there was none.
    uint64_t received = 0;       // Messages before it have been received.
    std::deque<Message> ahead;   // Received and not asked for yet.
  };
  KafkaReader(Options options, KafkaLibrary library)
      : options_(std::move(options)), library_(std::move(library)), topic_(nullptr, nullptr) {}
  // Makes calls until one succeeds, or fails for another reason than brokers that are away.
  Status Retry(std::string_view what, const std::function<KafkaError(int timeout_ms)>& call);
  Status Receive(uint32_t number, OffsetRange offsets, const Take& take);
  std::string Name(uint32_t partition) const;

  const Options options_;
  const KafkaLibrary library_;
  std::unique_ptr<KafkaTopic, void (*)(KafkaTopic*)> topic_;
  std::vector<Partition> partitions_;
};

}  // namespace dt::worker
