// Carries out orders to train and to evaluate. Owned by the train thread.
#pragma once

#include <functional>
#include <memory>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/wire/control.h"
#include "worker/data/dataset.h"
#include "worker/train/train_step.h"

namespace dt::worker {

struct Datasets {
  std::unique_ptr<Dataset> train, valid, test;
  const Dataset& of(SplitKind split) const;
};

class Trainer {
 public:
  struct Options {
    const JobConfig& job;
    const Datasets& data;
    std::shared_ptr<const Routes> routes;
    PsClient& client;
    Engine& engine;
    Collective& collective;
    std::function<Status()> interrupted;
    // After each step: steps done, samples of this order so far, loss of the step.
    std::function<void(Step step, uint64_t samples, double loss)> progress;
  };
  explicit Trainer(Options options) : options_(std::move(options)) {}

  Result<TrainDone> Train(const TrainOrder& order);
  Result<EvaluateDone> Evaluate(const EvaluateOrder& order);

 private:
  std::unique_ptr<SliceReader> OpenReader(const Dataset& data, LookupFor purpose,
                                          std::function<bool(LookupPlan&)> next);
  std::function<bool(LookupPlan&)> OwnSlices(const TrainOrder& order) const;
  std::function<bool(LookupPlan&)> OwnBatches(const EvaluateOrder& order) const;

  const Options options_;
  SparePlans spare_{8};
};

}  // namespace dt::worker
