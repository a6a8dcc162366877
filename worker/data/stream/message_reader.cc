#include "worker/data/stream/message_reader.h"

#include "worker/data/kafka/kafka_reader.h"
#include "worker/data/stream/command_reader.h"

namespace dt::worker {

Result<std::unique_ptr<MessageReader>> OpenMessages(const StreamConfig& config,
                                                    std::function<Status()> interrupted) {
  if (!config.command.empty()) {
    return std::make_unique<CommandReader>(config, std::move(interrupted));
  }
  return KafkaReader::Open({.brokers = config.brokers,
                            .topic = config.topic,
                            .settings = config.settings,
                            .patience = config.patience,
                            .interrupted = std::move(interrupted)});
}

}  // namespace dt::worker
