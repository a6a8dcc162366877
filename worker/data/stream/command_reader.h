// Messages that commands print, one command for each partition; a line is a message. A command is
// told by its environment which it is, DOVETAIL_PARTITION, and with which message it begins,
// DOVETAIL_OFFSET; so it can be started again for messages that are read again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/input/command.h"
#include "worker/data/stream/message_reader.h"

namespace dt::worker {

class CommandReader : public MessageReader {
 public:
  // `interrupted`: as in OpenTopic.
  CommandReader(const StreamConfig& config, std::function<Status()> interrupted);

  // Errors of End and Read: Unavailable, if a command cannot be started or has failed; Invalid, if
  // it has ended; Malformed, for an endless line.
  Result<uint32_t> Partitions() override { return static_cast<uint32_t>(partitions_.size()); }
  Result<OffsetRange> Range(uint32_t) override { return OffsetRange(); }
  Result<uint64_t> End(uint32_t partition, uint64_t known) override;
  Status Read(uint32_t partition, OffsetRange offsets, const Take& take) override;

 private:
  struct Partition {
    std::unique_ptr<Command> command;  // Null: it does not run.
    uint64_t next = 0;                 // The message that the next line is.
    uint64_t bytes = 0;                // That it has printed.
    std::string ahead;                 // Printed, and not yet taken.
  };
  Status Start(uint32_t partition, uint64_t offset);
  Result<bool> Fill(uint32_t partition, int timeout_ms);
  Status ReadFrom(uint32_t partition, uint64_t end, const Take& take);

  const std::string command_;
  const std::function<Status()> interrupted_;
  std::vector<Partition> partitions_;
};

}  // namespace dt::worker
