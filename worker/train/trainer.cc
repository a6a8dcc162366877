#include "worker/train/trainer.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "worker/train/scorer.h"

namespace dt::worker {

const Dataset& Datasets::of(SplitKind split) const {
  switch (split) {
    case SplitKind::kTrain:
      return *train;
    case SplitKind::kValid:
      return *valid;
    case SplitKind::kTest:
      return *test;
  }
  DT_UNREACHABLE();
}

std::unique_ptr<SliceReader> Trainer::OpenReader(const Dataset& data, LookupFor purpose,
                                                 std::function<bool(LookupPlan&)> next) {
  const Plan& plan = options_.engine.plan();
  return std::make_unique<SliceReader>(
      SliceReader::Options{.data = data,
                           .plan = plan,
                           .routes = options_.routes,
                           .wire_tables = WireTables(plan.graph, options_.job.model.tables),
                           .purpose = purpose,
                           .spare = spare_,
                           .interrupted = options_.interrupted,
                           .next = std::move(next)});
}

// ------------------------------------------------------------ training

// This rank's slices, step by step.
std::function<bool(LookupPlan&)> Trainer::OwnSlices(const TrainOrder& order) const {
  const uint64_t rows = options_.data.train->rows();
  const JobConfig& job = options_.job;
  return [order, rows, rank = options_.collective.rank(),
          batch_size = options_.engine.plan().batch_size,
          positions = EpochOrder(job.seed, order.epoch, rows, job.data.shuffle_window),
          step = order.first_step, slice = SliceIndex{0}](LookupPlan& plan) mutable {
    const auto slices = static_cast<uint32_t>(order.slice_owner.size());
    for (;; ++slice) {
      if (slice == slices) {
        slice = 0;
        ++step;
      }
      if (step >= order.end_step) return false;
      if (order.slice_owner[slice] == rank) break;
    }
    const SampleRange whole = StepRange(rows, batch_size, step - order.epoch_first_step);
    const SampleRange part = SliceRange(whole, slice, slices);
    positions.Rows(part.begin, part.end, plan.rows);
    plan.batch.step = step;
    plan.batch.slice = slice++;
    plan.batch.samples = static_cast<uint32_t>(part.size());
    plan.batch.step_samples = static_cast<uint32_t>(whole.size());
    plan.batch.first_sample = part.begin;
    return true;
  };
}

Result<TrainDone> Trainer::Train(const TrainOrder& order) {
  const uint64_t rows = options_.data.train->rows();
  const Plan& plan = options_.engine.plan();
  if (order.slice_owner.size() != plan.slices || order.first_step < order.epoch_first_step) {
    return Internal("the scheduler ordered steps {} to {} in {} slices, which the plan cannot do",
                    order.first_step, order.end_step, order.slice_owner.size());
  }
  const std::unique_ptr<SliceReader> reader =
      OpenReader(*options_.data.train, LookupFor::kTrain, OwnSlices(order));
  RowPuller puller(*reader, options_.client);
  Stages stages{puller, options_.client, options_.engine, options_.collective};
  const TimePoint begun = SystemClock().Now();
  TrainDone done{.end_step = order.end_step};
  DT_TRY_STATUS(BeginStep(order.first_step, stages));
  for (Step step = order.first_step; step < order.end_step; ++step) {
    DT_TRY_STATUS(options_.interrupted());
    const auto samples = static_cast<uint32_t>(
        StepRange(rows, plan.batch_size, step - order.epoch_first_step).size());
    DT_TRY(const double loss, TrainStep({.step = step,
                                         .samples = samples,
                                         .slice_owner = order.slice_owner,
                                         .rate_scale = order.rate_scale},
                                        stages));
    done.samples += samples;
    done.loss_sum += loss * samples;
    options_.progress(step + 1, done.samples, loss);
  }
  done.seconds = SecondsBetween(begun, SystemClock().Now());
  return done;
}

// ------------------------------------------------------------ evaluation

// Batch b of the split, in file order, is rank b mod ranks'.
std::function<bool(LookupPlan&)> Trainer::OwnBatches(const EvaluateOrder& order) const {
  const uint64_t rows = options_.data.of(order.split).rows();
  return [step = order.step, rows, ranks = options_.collective.size(),
          batch_size = options_.engine.plan().batch_size,
          batch = uint64_t{options_.collective.rank()}](LookupPlan& plan) mutable {
    const uint64_t begin = batch * batch_size;
    if (begin >= rows) return false;
    const uint64_t end = std::min(rows, begin + batch_size);
    plan.rows.resize(end - begin);
    std::iota(plan.rows.begin(), plan.rows.end(), begin);
    plan.batch.step = step;
    plan.batch.slice = 0;
    plan.batch.samples = plan.batch.step_samples = static_cast<uint32_t>(end - begin);
    plan.batch.first_sample = begin;
    batch += ranks;
    return true;
  };
}

Result<EvaluateDone> Trainer::Evaluate(const EvaluateOrder& order) {
  const Plan& plan = options_.engine.plan();
  const std::unique_ptr<SliceReader> reader =
      OpenReader(options_.data.of(order.split), LookupFor::kEvaluate, OwnBatches(order));
  RowPuller puller(*reader, options_.client);
  DT_TRY(Scorer scorer, Scorer::Open(plan.graph, order.predictions_path));
  DT_TRY_STATUS(puller.Begin(order.step, PullMode::kEvaluate));
  for (;;) {
    DT_TRY_STATUS(options_.interrupted());
    DT_TRY(const LookupPlan* const slice, puller.Finish());
    if (slice == nullptr) break;
    const Batch& batch = slice->batch;
    const std::span<const std::span<const float>> rows = puller.rows();
    DT_TRY_STATUS(puller.Begin(order.step, PullMode::kEvaluate));
    const auto outputs =
        options_.engine.Evaluate({*slice, rows}, {.seed = plan.seed,
                                                  .step = order.step,
                                                  .first_sample = batch.first_sample,
                                                  .step_samples = batch.samples,
                                                  .training = false});
    DT_TRY_STATUS(scorer.Add(batch.first_sample / plan.batch_size, batch, outputs));
  }
  return scorer.Finish();
}

}  // namespace dt::worker
