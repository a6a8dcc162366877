// Reads the messages of a Kafka topic through brokers that may be away for a while.
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
#include "worker/data/stream/message_reader.h"

namespace dt::worker {

class KafkaReader : public MessageReader {
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
  static Result<std::unique_ptr<MessageReader>> Open(Options options);

  // All calls: Unavailable, if the brokers were away for longer than `patience`; the status that
  // interrupted it.
  Result<uint32_t> Partitions() override;
  // While brokers are away it may take longer than `patience`; Partitions does not.
  Result<OffsetRange> Range(uint32_t partition) override;
  Result<uint64_t> End(uint32_t partition, uint64_t known) override;
  Status Read(uint32_t partition, OffsetRange offsets, const Take& take) override;

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
