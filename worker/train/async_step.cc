#include "worker/train/async_step.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/train/stage_spans.h"

namespace dt::worker {
namespace {

// What a worker sends before it asks whether the first of it has arrived: memory, not staleness.
constexpr Step kPushesAhead = 8;

PushInfo PushInfoOf(const AsyncStepInfo& info) {
  return {.step = info.step,
          .rate_scale = info.rate_scale,
          .worker = info.worker,
          .first_step = info.first_step};
}

// What the optimizer of the dense parameters does here: l2, clipping.
Status Update(const AsyncStepInfo& info, const RunInfo& run, AsyncStages& on) {
  const TimelineSpan span(on.timeline, stage::kUpdate, info.step);
  constexpr uint32_t kOwner[] = {0};
  DT_TRY_STATUS(on.engine.Exchange(on.alone, kOwner, info.step));
  DT_TRY_STATUS(on.engine.Update(run));
  return on.engine.FinishUpdate();
}

}  // namespace

Result<AsyncStepResult> AsyncTrainStep(const AsyncStepInfo& info, AsyncStages& on) {
  DT_TRY(const LookupPlan* const slice, on.puller.Finish());
  DT_CHECK(slice != nullptr && slice->batch.step == info.step && slice->batch.slice == 0);
  const Batch& batch = slice->batch;
  const auto pushes_from = info.step - std::min(info.step, kPushesAhead);
  // With no samples left the step is still pushed: others count it.
  std::vector<std::span<const float>> changes(slice->tables.size());
  AsyncStepResult result{.samples = batch.samples};
  if (batch.samples == 0) {
    on.client.BeginPush(PushInfoOf(info), *slice, changes);
    DT_TRY_STATUS(on.client.WaitForPushesBefore(pushes_from));
    return result;
  }
  Recorded(on.timeline, stage::kTakeDense, info.step,
           [&] { on.dense.Take(*slice, on.puller.rows()); });
  const RunInfo run{.seed = on.engine.plan().seed,
                    .step = info.step,
                    .first_sample = batch.first_sample,
                    .step_samples = batch.step_samples,
                    .rate_scale = info.rate_scale,
                    .training = true};
  DT_TRY(const auto row_grads, Recorded(on.timeline, stage::kRunSlice, info.step, [&] {
           return on.engine.RunSlice({*slice, on.puller.rows()}, run);
         }));
  DT_TRY_STATUS(Update(info, run, on));
  const DenseBlocks::Rows dense = on.dense.Changes(*slice);
  std::ranges::copy(row_grads, changes.begin());
  std::ranges::copy(dense, changes.begin() + static_cast<ptrdiff_t>(row_grads.size()));
  Recorded(on.timeline, stage::kSendPush, info.step,
           [&] { on.client.BeginPush(PushInfoOf(info), *slice, changes); });
  DT_TRY_STATUS(Recorded(on.timeline, stage::kAwaitPushes, info.step,
                         [&] { return on.client.WaitForPushesBefore(pushes_from); }));
  result.loss = on.engine.step_loss();
  return result;
}

}  // namespace dt::worker
