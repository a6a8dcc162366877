// Carries out orders to train and to evaluate. Owned by the train thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "common/base/status.h"
#include "common/config/job_config.h"
#include "common/control/orders.h"
#include "worker/data/dataset.h"
#include "worker/data/step_samples.h"
#include "worker/train/async_step.h"
#include "worker/train/order_slices.h"
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
    std::span<const uint64_t> stripe_rows = {};  // StartMessage::stripe_rows.
    PsClient& client;
    Engine& engine;
    // A second engine with the same plan, for every second step of asynchronous workers, so that
    // neighbouring steps overlap; null: they do not.
    Engine* other_engine = nullptr;
    // Connects all workers; has this one alone if workers are asynchronous.
    TeamLink& team;
    ProcessId self;
    // Evaluations are also written to this file, as CSV; empty: none.
    std::string predictions_path = {};
    uint32_t rank = 0, ranks = 1;
    // Both outlive views: an order goes on in the next one. `progress` is for synchronous workers.
    TrainProgress& progress;
    OrderProgress& order;
    // For asynchronous workers without a bound on staleness. Called on the reader's thread.
    OrderSlices::NextSplit next_split = {};
    std::function<Status()> interrupted;
    // Called after each step, with the steps done and the samples of this order so far.
    std::function<void(Step step, uint64_t samples)> report;
    Timeline* timeline = nullptr;  // Records training; null: nothing is recorded.
    const Clock* clock = &SystemClock();
  };
  explicit Trainer(Options options);

  // After an error the engine is abandoned, unless the barrier of a step was entered.
  Result<TrainDone> Train(const TrainOrder& order);
  // Every step before `step` is complete. If this worker has entered a barrier, completes the step
  // or gives it up. Errors: Internal, if a step is complete that this worker has not entered.
  Status Settle(Step step);
  Result<EvaluateDone> Evaluate(const EvaluateOrder& order);
  // If dense parameters are on servers, copies their values from there to the engine. To be called
  // between orders, when they do not change.
  Status PullDense();
  // Called when the servers' rows have been replaced.
  void ForgetRows();
  const RowCache* cache() const { return cache_ ? &*cache_ : nullptr; }

 private:
  std::unique_ptr<SliceReader> OpenReader(const Dataset& data, LookupFor purpose, NextSlice next);
  uint32_t team() const { return options_.rank / options_.engine.plan().devices; }
  TrainDone NothingDone(const TrainOrder& order) const;
  Step FirstStepOf(const TrainOrder& order) const;
  Result<TrainDone> TrainSynchronous(const TrainOrder& order);
  Result<TrainDone> RunSteps(const TrainOrder& order, Stages& stages);
  Result<TrainDone> TrainAsynchronous(const TrainOrder& order);
  Result<TrainDone> RunSteps(const TrainOrder& order, AsyncStages& stages);
  float LrScale(const TrainOrder& order, Step step) const;  // From the plateau and the schedule.
  // In an order: so many pulls are sent, and so many steps begun.
  struct UnderWay {
    uint64_t pulled = 0, begun = 0;
    bool all_pulled = false;
  };
  Status BeginAsynchronous(const AsyncStepInfo& now, UnderWay& steps, AsyncStages& on);
  Status SetDense();
  LookupPlan DensePlan() const;
  std::vector<uint32_t> WireTablesOf(const std::vector<DenseBlockTable>& fixed) const;
  std::shared_ptr<StepSamples> SamplesOf(const TrainOrder& order) const;
  NextSlice OwnSlices(const TrainOrder& order) const;
  NextSlice OwnParts(const TrainOrder& order) const;
  bool CanDo(const TrainOrder& order) const;
  uint64_t StepsPerEpoch() const;
  NextSlice OwnBatches(const EvaluateOrder& order) const;
  NextSlice OwnStripes(const EvaluateOrder& order) const;
  NextSlice OwnMessages(const EvaluateOrder& order) const;

  const Options options_;
  SparePlans spare_{12};
  std::optional<DenseBlocks> dense_;        // Set if workers are asynchronous.
  std::optional<DenseBlocks> other_dense_;  // Set if there is another engine.
  std::optional<RowCache> cache_;           // Set if rows are cached.
  bool dense_set_ = false;                  // The servers have values.
};

}  // namespace dt::worker
