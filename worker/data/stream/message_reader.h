// Reads the messages of a stream by partition and offset. Used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/config/data_config.h"

namespace dt::worker {

struct OffsetRange {
  uint64_t first = 0, end = 0;
  uint64_t size() const { return end - first; }
  friend bool operator==(const OffsetRange&, const OffsetRange&) = default;
};

class MessageReader {
 public:
  virtual ~MessageReader() = default;

  // How many partitions the topic has. NotFound: there is no such topic.
  virtual Result<uint32_t> Partitions() = 0;
  // The messages that a partition has before a job trains on it.
  virtual Result<OffsetRange> Range(uint32_t partition) = 0;
  // Where the messages of a partition end now. It is known that they do not end before `known`.
  virtual Result<uint64_t> End(uint32_t partition, uint64_t known) = 0;
  // Calls `take` for the messages of a partition with these offsets, in ascending order. Offsets
  // without a message are passed over. Waits until all are there. Reading on where it ended is
  // cheap. Errors: Malformed, if an offset is there no more; those of `take`.
  struct Message {
    uint64_t offset = 0;
    double written = 0;  // Seconds since 1970; 0: unknown.
    std::string text;
  };
  using Take = std::function<Status(const Message& message)>;
  virtual Status Read(uint32_t partition, OffsetRange offsets, const Take& take) = 0;
};

// Opens a reader of a stream. `interrupted` is called while the reader waits; what it returns ends
// the wait, if it is not OK.
using OpenStream = std::function<Result<std::unique_ptr<MessageReader>>(
    const StreamConfig& config, std::function<Status()> interrupted)>;
// The reader of a topic of Kafka, or of commands.
Result<std::unique_ptr<MessageReader>> OpenMessages(const StreamConfig& config,
                                                    std::function<Status()> interrupted);

}  // namespace dt::worker
