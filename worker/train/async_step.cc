#include "worker/train/async_step.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/train/stage_spans.h"

namespace dt::worker {
namespace {

// Pushes that a worker sends before it waits for the first of them: a bound on memory, not on
// staleness.
constexpr Step kPushesAhead = 8;

PushInfo PushInfoOf(const AsyncStepInfo& info) {
  return {.step = info.step,
          .lr_scale = info.lr_scale,
          .worker = info.worker,
          .first_step = info.first_step};
}

RunInfo RunInfoOf(const AsyncStepInfo& info, const AsyncLane& lane) {
  const Batch& batch = lane.slice->plan->batch;
  return {.seed = lane.engine.plan().seed,
          .step = info.step,
          .first_sample = batch.first_sample,
          .step_samples = batch.step_samples,
          .lr_scale = info.lr_scale,
          .training = true};
}

// The part of the dense optimizer that runs here: l2, clipping.
Status Update(const AsyncStepInfo& info, AsyncLane& lane, AsyncStages& on) {
  const TimelineSpan span(on.timeline, stage::kUpdate, info.step);
  DT_TRY_STATUS(lane.engine.FinishExchange());
  DT_TRY_STATUS(lane.engine.Update(RunInfoOf(info, lane)));
  return lane.engine.FinishUpdate();
}

Status FindChanges(const AsyncStepInfo& info, AsyncLane& lane, AsyncStages& on) {
  DT_TRY(const RowSpans row_grads, Recorded(on.timeline, stage::kRunSlice, info.step,
                                            [&] { return lane.engine.RowGrads(); }));
  DT_TRY_STATUS(Update(info, lane, on));
  const DenseBlocks::Rows dense = lane.dense.Changes(*lane.slice->plan);
  std::ranges::copy(row_grads, lane.changes.begin());
  std::ranges::copy(dense, lane.changes.begin() + static_cast<ptrdiff_t>(row_grads.size()));
  return OkStatus();
}

}  // namespace

Status BeginAsyncStep(const AsyncStepInfo& info, AsyncStages& on) {
  AsyncLane& lane = on.LaneOf(info.step);
  DT_TRY(lane.slice, on.puller.Finish());
  DT_CHECK(lane.slice != nullptr);
  const LookupPlan& slice = *lane.slice->plan;
  DT_CHECK(slice.batch.step == info.step && slice.batch.slice == 0);
  if (slice.batch.samples == 0) return OkStatus();
  Recorded(on.timeline, stage::kTakeDense, info.step,
           [&] { lane.dense.Take(slice, lane.slice->rows); });
  constexpr uint32_t kOwner[] = {0};
  lane.engine.BeginStep(info.step, kOwner);
  DT_TRY_STATUS(lane.engine.BeginSlice(slice, RunInfoOf(info, lane)));
  lane.engine.GiveRows(lane.slice->rows);
  return OkStatus();
}

Result<AsyncStepResult> EndAsyncStep(const AsyncStepInfo& info, AsyncStages& on) {
  AsyncLane& lane = on.LaneOf(info.step);
  const LookupPlan& slice = *lane.slice->plan;
  AsyncStepResult result{.samples = slice.batch.samples};
  // A step without samples is pushed, too, because the servers count it.
  lane.changes.assign(slice.tables.size(), {});
  if (result.samples > 0) {
    DT_TRY_STATUS(FindChanges(info, lane, on));
    result.losses = lane.engine.step_losses();
  }
  Recorded(on.timeline, stage::kSendPush, info.step,
           [&] { on.client.BeginPush(PushInfoOf(info), slice, lane.changes); });
  const Step pushes_from =
      on.overlap ? info.step - std::min(info.step, kPushesAhead) : info.step + 1;
  DT_TRY_STATUS(Recorded(on.timeline, stage::kAwaitPushes, info.step,
                         [&] { return on.client.WaitForPushesBefore(pushes_from); }));
  return result;
}

}  // namespace dt::worker
