// How a Trainer evaluates.
#include <algorithm>
#include <numeric>
#include <utility>

#include "common/layout/owner.h"
#include "worker/data/stream/stream_dataset.h"
#include "worker/data/striped_dataset.h"
#include "worker/train/scorer.h"
#include "worker/train/trainer.h"

namespace dt::worker {
namespace {

void TakeBatch(Step step, SampleRange rows, LookupPlan& plan) {
  plan.rows.resize(rows.size());
  std::iota(plan.rows.begin(), plan.rows.end(), rows.begin);
  plan.batch.step = step;
  plan.batch.epoch = 0;
  plan.batch.slice = 0;
  plan.batch.samples = plan.batch.step_samples = static_cast<uint32_t>(rows.size());
  plan.batch.first_sample = rows.begin;
}

}  // namespace

// Batch b of the split, in file order, belongs to team b mod teams.
NextSlice Trainer::OwnBatches(const EvaluateOrder& order) const {
  const Dataset& data = options_.data.of(order.split);
  const Plan& plan_of = options_.engine.plan();
  const uint32_t teams = options_.ranks / plan_of.devices;
  if (!order.cut.empty()) return OwnMessages(order);
  if (data.striped() != nullptr) return OwnStripes(order);
  return [step = order.step, rows = data.rows(), teams, batch_size = plan_of.batch_size,
          batch = uint64_t{team()}](LookupPlan& plan) mutable {
    const uint64_t begin = batch * batch_size;
    if (begin >= rows) return false;
    TakeBatch(step, {begin, std::min(rows, begin + batch_size)}, plan);
    batch += teams;
    return true;
  };
}

// A team has all batches of its stripes.
NextSlice Trainer::OwnStripes(const EvaluateOrder& order) const {
  const StripedDataset& data = *options_.data.of(order.split).striped();
  const Plan& plan_of = options_.engine.plan();
  return [&data, step = order.step, team = team(), teams = options_.ranks / plan_of.devices,
          batch_size = plan_of.batch_size, stripe = uint32_t{0},
          begin = uint64_t{0}](LookupPlan& plan) mutable -> Result<bool> {
    for (; stripe < data.stripes(); ++stripe, begin = 0) {
      if (OwnerOf(stripe, data.stripes(), teams) != team) continue;
      DT_TRY(const Dataset* const rows_of, data.Stripe(stripe));
      if (begin >= rows_of->rows()) continue;
      const uint64_t end = std::min(rows_of->rows(), begin + batch_size);
      TakeBatch(step, {StripeRow(stripe, begin), StripeRow(stripe, end)}, plan);
      begin = end;
      return true;
    }
    return false;
  };
}

// A team has all batches of its partitions.
NextSlice Trainer::OwnMessages(const EvaluateOrder& order) const {
  const Plan& plan_of = options_.engine.plan();
  return [order, team = team(), teams = options_.ranks / plan_of.devices,
          batch_size = plan_of.batch_size, partition = uint32_t{0},
          done = uint64_t{0}](LookupPlan& plan) mutable {
    const StreamCut& cut = order.cut;
    for (; partition < cut.first.size(); ++partition, done = 0) {
      if (OwnerOf(partition, cut.first.size(), teams) != team) continue;
      if (done >= cut.count[partition]) continue;
      const uint64_t end = std::min(cut.count[partition], done + batch_size);
      const uint64_t first = StripeRow(partition, cut.first[partition]);
      TakeBatch(order.step, {first + std::exchange(done, end), first + end}, plan);
      return true;
    }
    return false;
  };
}

Result<EvaluateDone> Trainer::Evaluate(const EvaluateOrder& order) {
  DT_TRY_STATUS(PullDense());
  const Plan& plan = options_.engine.plan();
  const Dataset& data = order.cut.empty() ? options_.data.of(order.split) : *options_.data.train;
  const std::unique_ptr<SliceReader> reader =
      OpenReader(data, LookupFor::kEvaluate, OwnBatches(order));
  RowPuller puller(*reader, options_.client);
  DT_TRY(Scorer scorer, Scorer::Open(plan.graph, options_.predictions_path, options_.job.data));
  DT_TRY_STATUS(puller.Begin(order.step, PullMode::kEvaluate));
  for (;;) {
    DT_TRY_STATUS(options_.interrupted());
    DT_TRY(const RowPuller::Slice* const slice, puller.Finish());
    if (slice == nullptr) break;
    const Batch& batch = slice->plan->batch;
    DT_TRY_STATUS(puller.Begin(order.step, PullMode::kEvaluate));
    DT_TRY(const RowSpans outputs, options_.engine.Evaluate({*slice->plan, slice->rows},
                                                            {.seed = plan.seed,
                                                             .step = order.step,
                                                             .first_sample = batch.first_sample,
                                                             .step_samples = batch.samples,
                                                             .training = false}));
    // The workers of a team have parts of a batch each.
    const uint64_t number = batch.first_sample / plan.batch_size;
    DT_TRY_STATUS(scorer.Add(number * plan.devices + plan.position, batch, outputs));
  }
  if (const StreamDataset* const stream = options_.data.train->stream()) stream->ForgetGathered();
  return scorer.Finish();
}

}  // namespace dt::worker
