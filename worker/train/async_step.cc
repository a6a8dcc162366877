#include "worker/train/async_step.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "worker/train/stage_spans.h"

namespace dt::worker {
namespace {

// Pushes that a worker sends before it waits for the first of them: a bound on memory, not on
// staleness.
constexpr uint64_t kPushesAhead = 8;

PushInfo PushInfoOf(const AsyncStepInfo& info, const Batch& batch, const AsyncStages& on) {
  return {.step = batch.step,
          .slice = batch.pushed_slice,
          .slices = info.slices,
          .lr_scale = on.lr_scale(batch.step),
          .turn = {.worker = info.worker,
                   .order = info.order,
                   .number = info.number,
                   .clock = batch.next_step,
                   .settled = info.settled}};
}

RunInfo RunInfoOf(const AsyncLane& lane, const AsyncStages& on) {
  const Batch& batch = lane.slice->plan->batch;
  return {.seed = lane.engine.plan().seed,
          .step = batch.step,
          .first_sample = batch.first_sample,
          .step_samples = batch.step_samples,
          .lr_scale = on.lr_scale(batch.step),
          .training = true};
}

// The part of the dense optimizer that runs here: l2, clipping.
Status Update(const AsyncStepInfo& info, AsyncLane& lane, AsyncStages& on) {
  const TimelineSpan span(on.timeline, stage::kUpdate, info.count());
  DT_TRY_STATUS(lane.engine.FinishExchange());
  DT_TRY_STATUS(lane.engine.Update(RunInfoOf(lane, on)));
  return lane.engine.FinishUpdate();
}

Status FindChanges(const AsyncStepInfo& info, AsyncLane& lane, AsyncStages& on) {
  DT_TRY(const RowSpans row_grads, Recorded(on.timeline, stage::kRunSlice, info.count(),
                                            [&] { return lane.engine.RowGrads(); }));
  DT_TRY_STATUS(Update(info, lane, on));
  const float share = 1.0f / static_cast<float>(info.slices);
  const DenseBlocks::Rows dense = lane.dense.Changes(*lane.slice->plan, share);
  std::ranges::copy(row_grads, lane.changes.begin());
  std::ranges::copy(dense, lane.changes.begin() + static_cast<ptrdiff_t>(row_grads.size()));
  return OkStatus();
}

}  // namespace

Status BeginAsyncStep(const AsyncStepInfo& info, AsyncStages& on) {
  AsyncLane& lane = on.LaneOf(info.number);
  DT_TRY(lane.slice, on.puller.Finish());
  DT_CHECK(lane.slice != nullptr);
  const LookupPlan& slice = *lane.slice->plan;
  DT_CHECK(slice.batch.slice == 0);
  if (slice.batch.samples == 0) return OkStatus();
  Recorded(on.timeline, stage::kTakeDense, info.count(),
           [&] { lane.dense.Take(slice, lane.slice->rows); });
  constexpr uint32_t kOwner[] = {0};
  lane.engine.BeginStep(slice.batch.step, kOwner);
  DT_TRY_STATUS(lane.engine.BeginSlice(slice, RunInfoOf(lane, on)));
  lane.engine.GiveRows(lane.slice->rows);
  return OkStatus();
}

Result<AsyncStepResult> EndAsyncStep(const AsyncStepInfo& info, AsyncStages& on) {
  AsyncLane& lane = on.LaneOf(info.number);
  const LookupPlan& slice = *lane.slice->plan;
  const Batch& batch = slice.batch;
  AsyncStepResult result{.step = batch.step, .slice = batch.pushed_slice, .samples = batch.samples};
  // A step without samples is pushed, too, because the servers count it.
  lane.changes.assign(slice.tables.size(), {});
  PassFailpoint("slice", batch.step);
  if (result.samples > 0) {
    DT_TRY_STATUS(FindChanges(info, lane, on));
    result.losses = lane.engine.step_losses();
  }
  PassFailpoint("push", batch.step);
  Recorded(on.timeline, stage::kSendPush, info.count(),
           [&] { on.client.BeginPush(PushInfoOf(info, batch, on), slice, lane.changes); });
  result.acknowledged =
      on.overlap ? info.number - std::min(info.number, kPushesAhead) : info.number + 1;
  DT_TRY_STATUS(Recorded(on.timeline, stage::kAwaitPushes, info.count(),
                         [&] { return on.client.WaitForPushesBefore(result.acknowledged); }));
  return result;
}

}  // namespace dt::worker
