// A topic of messages that grows in virtual time, behind brokers that may be away. Its content is a
// function of the partition and the offset.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "test/sim/cluster/world.h"
#include "worker/data/stream/message_reader.h"

namespace dt::sim {

class SimTopic {
 public:
  // Every partition comes to have so many messages, the last of them after `growing`; the first
  // partition grows more slowly than the others.
  struct Options {
    uint32_t partitions = 1;
    uint64_t messages = 0;
    Duration growing{};
    // The message at an offset; a line of the job's data.
    std::function<std::string(uint32_t partition, uint64_t offset)> text;
  };
  // `world` outlives it.
  SimTopic(const World& world, Options options);

  // Nothing is written until then, nor are messages read; what is there is still told.
  void StopBrokers(Duration duration);
  // Behind the last message that is there now.
  uint64_t EndOf(uint32_t partition) const;
  bool away() const { return world_.Now() < back_; }
  const Options& options() const { return options_; }
  const World& world() const { return world_; }

  // A process's reader. Read waits by `wait`, which returns at the time, or with an error if it is
  // to wait no longer; the other calls do not wait. REQUIRES: the topic outlives it.
  using Wait = std::function<Status(TimePoint until)>;
  std::unique_ptr<worker::MessageReader> Open(std::function<Status()> interrupted, Wait wait) const;

 private:
  const World& world_;
  const Options options_;
  TimePoint begun_, back_;  // Later by each time that the brokers were away.
};

}  // namespace dt::sim
