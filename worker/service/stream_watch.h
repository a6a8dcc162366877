// Tells the scheduler how far the partitions of a stream go: those of this worker, on a thread of
// its own, a few times in a second.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/cluster/view.h"
#include "common/config/data_config.h"
#include "common/control/messages.h"
#include "worker/data/kafka/kafka_reader.h"

namespace dt::worker {

class StreamWatch {
 public:
  using Send = std::function<void(StreamReportMessage)>;
  // `send` is called on the watch's thread.
  StreamWatch(std::unique_ptr<KafkaReader> reader, uint32_t partitions, Send send);
  // Reports from now on the partitions that worker `self` has in the view; none if it is not in it.
  void BeginView(const View& view, ProcessId self);
  // Why it reports no more; OK as long as it does.
  Status problem() const;

 private:
  void Run(const std::stop_token& stop);
  Status Report();

  const std::unique_ptr<KafkaReader> reader_;  // Of the thread.
  const uint32_t partitions_;
  const Send send_;
  mutable Mutex mutex_;
  uint64_t rank_ DT_GUARDED_BY(mutex_) = 0, workers_ DT_GUARDED_BY(mutex_) = 0;  // Of the view.
  Status problem_ DT_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace dt::worker
