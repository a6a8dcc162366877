// Carries out orders to train and to evaluate. Owned by the train thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/control/orders.h"
#include "worker/data/dataset.h"
#include "worker/train/async_step.h"
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
    PsClient& client;
    Engine& engine;
    // Of the same plan, for every second step of asynchronous workers, so that neighbouring steps
    // overlap; null: they do not.
    Engine* other_engine = nullptr;
    Collective& collective;  // Of all workers; of this one alone if workers are asynchronous.
    ProcessId self;
    std::string predictions_path = {};  // Evaluations are also written there, as CSV; empty: not.
    uint32_t rank = 0, ranks = 1;
    // Asynchronous workers without a bound: the next parts of the order at hand; none, or an
    // error: the end of it. On the reader's thread.
    std::function<Result<SplitMessage>()> next_split = {};
    std::function<Status()> interrupted;
    // After each step: steps done, samples of this order so far.
    std::function<void(Step step, uint64_t samples)> progress;
    Timeline* timeline = nullptr;  // Of training; null: nothing is recorded.
  };
  explicit Trainer(Options options);

  Result<TrainDone> Train(const TrainOrder& order);
  Result<EvaluateDone> Evaluate(const EvaluateOrder& order);
  // Brings the engine's parameters to what they are on the servers, if they live there. At a
  // boundary between orders, where they do not change.
  Status PullDense();
  // What servers hold has been replaced.
  void ForgetRows();
  const RowCache* cache() const { return cache_ ? &*cache_ : nullptr; }

 private:
  std::unique_ptr<SliceReader> OpenReader(const Dataset& data, LookupFor purpose,
                                          std::function<bool(LookupPlan&)> next);
  TrainDone NothingDone(const TrainOrder& order) const;
  Result<TrainDone> TrainTogether(const TrainOrder& order);
  Result<TrainDone> TrainApart(const TrainOrder& order);
  float RateScale(const TrainOrder& order, Step step) const;  // Of the plateau and the schedule.
  // Of an order: steps before `pulled` have been asked for, those before `begun` are computed.
  struct UnderWay {
    Step pulled = 0, begun = 0;
    bool all_pulled = false;
  };
  Status BeginApart(const TrainOrder& order, Step step, UnderWay& steps, AsyncStages& on);
  AsyncStepInfo AsyncInfoOf(const TrainOrder& order, Step step) const;
  Status SetDense();
  LookupPlan DensePlan() const;
  std::vector<uint32_t> WireTablesOf(const std::vector<DenseBlockTable>& fixed) const;
  std::function<bool(LookupPlan&)> OwnSlices(const TrainOrder& order) const;
  std::function<bool(LookupPlan&)> OwnParts(const TrainOrder& order) const;
  std::function<bool(LookupPlan&)> OwnBatches(const EvaluateOrder& order) const;

  const Options options_;
  SparePlans spare_{12};
  std::optional<DenseBlocks> dense_;        // If workers are asynchronous.
  std::optional<DenseBlocks> other_dense_;  // If they have another engine.
  std::optional<RowCache> cache_;           // If they keep rows.
  bool dense_set_ = false;                  // The servers have values.
};

}  // namespace dt::worker
