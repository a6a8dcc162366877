// Tells the scheduler how far the partitions of a stream go: those of this worker, a few times in a
// second.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/cluster/view.h"
#include "common/config/data_config.h"
#include "common/control/messages.h"
#include "worker/data/stream/message_reader.h"

namespace dt::worker {

// Calls `what` every so often until it returns false, or the result is destroyed, which waits for
// the call that is under way.
using Repeat = std::function<std::shared_ptr<void>(Duration every, std::function<bool()> what)>;
std::shared_ptr<void> RepeatOnThread(Duration every, std::function<bool()> what);

class StreamWatch {
 public:
  using Send = std::function<void(StreamReportMessage)>;
  // `reader` and `send` are used by what `repeat` calls.
  StreamWatch(std::unique_ptr<MessageReader> reader, uint32_t partitions, Send send,
              const Repeat& repeat);
  // The job begins with these messages, by partition.
  void Begin(std::vector<uint64_t> known);
  // Reports from now on the partitions that worker `self` has in the view; none if it is not in it.
  void BeginView(const View& view, ProcessId self);
  // Why it reports no more; OK as long as it does.
  Status problem() const;

 private:
  Status Report();

  const std::unique_ptr<MessageReader> reader_;
  const Send send_;
  mutable Mutex mutex_;
  // By partition: it is known that its messages do not end before.
  std::vector<uint64_t> known_ DT_GUARDED_BY(mutex_);
  uint64_t rank_ DT_GUARDED_BY(mutex_) = 0, workers_ DT_GUARDED_BY(mutex_) = 0;  // Of the view.
  Status problem_ DT_GUARDED_BY(mutex_);
  const std::shared_ptr<void> repeated_;
};

}  // namespace dt::worker
