// The stripes of the data that a worker reads (data.shuffle.by: slices): at first those that the
// scheduler names, and later, before each view begins, those of its slices in the view.
#pragma once

#include <functional>

#include "common/cluster/view.h"
#include "common/config/data_config.h"
#include "common/control/messages.h"
#include "common/runtime/task_pool.h"
#include "worker/service/worker_activity.h"
#include "worker/train/trainer.h"

namespace dt::worker {

// Used by one thread. Errors of all its functions: those of the files, and of `interrupted`, which
// is asked before each stripe.
class WorkerStripes {
 public:
  struct Options {
    const DataConfig& config;
    ProcessId self;
    TaskPool& pool;
    WorkerActivity& activity;
  };
  using Interrupted = std::function<Status()>;
  // Opens `data` in Read. `data` and all in `options` outlive it.
  WorkerStripes(const Options& options, Datasets& data) : options_(options), data_(data) {}

  // Reads these stripes, and returns what they have.
  Result<DataReadyMessage> Read(const ReadDataMessage& read, const Interrupted& interrupted);
  // The job begins with this view. Does nothing if the data is not cut.
  // Errors: Malformed, too, if a stripe has another number of rows than the job has found.
  Status Start(const StartMessage& start, const Interrupted& interrupted);
  // Reads the stripes that this worker lacks for the view. Errors: those of Start.
  Status ReadFor(const View& view, const Interrupted& interrupted);

 private:
  Result<StripeReport> Open(uint32_t number) const;

  const Options options_;
  Datasets& data_;
  uint32_t stripes_ = 0;               // 0: the data is not cut.
  uint32_t team_ = 1;                  // Workers of a team.
  std::vector<uint64_t> stripe_rows_;  // See StartMessage.
};

}  // namespace dt::worker
