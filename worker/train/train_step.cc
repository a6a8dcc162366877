#include "worker/train/train_step.h"

#include <algorithm>

#include "common/base/check.h"
#include "worker/train/stage_spans.h"

namespace dt::worker {
namespace {

RunInfo RunInfoOf(const StepInfo& info, const Engine& engine, uint64_t first_sample) {
  return {.seed = engine.plan().seed,
          .step = info.step,
          .first_sample = first_sample,
          .step_samples = info.samples,
          .rate_scale = info.rate_scale,
          .training = true};
}

Status Exchange(const StepInfo& info, Stages& on) {
  const TimelineSpan wait(on.timeline, stage::kAwaitExchange, info.step);
  const TimelineSpan span(on.timeline, stage::kExchange, info.step);
  return on.engine.Exchange(on.collective, info.slice_owner, info.step);
}

Status Barrier(const StepInfo& info, Stages& on) {
  const TimelineSpan wait(on.timeline, stage::kAwaitBarrier, info.step);
  const TimelineSpan span(on.timeline, stage::kBarrier, info.step);
  return on.collective.Barrier();
}

}  // namespace

Status BeginStep(Step step, Stages& on) { return on.puller.Begin(step, PullMode::kTrain); }

Result<double> TrainStep(const StepInfo& info, Stages& on) {
  const TimelineSpan whole(on.timeline, stage::kStep, info.step);
  const uint32_t slices = static_cast<uint32_t>(info.slice_owner.size());
  auto own = std::ranges::count(info.slice_owner, on.collective.rank());
  for (; own > 0; --own) {
    // What needs no rows is computed while they are on their way.
    const LookupPlan* const slice = on.puller.next();
    DT_CHECK(slice != nullptr && slice->batch.step == info.step);
    DT_TRY_STATUS(
        on.engine.BeginSlice(*slice, RunInfoOf(info, on.engine, slice->batch.first_sample)));
    DT_TRY_STATUS(on.puller.Finish().status());
    // Rows of one step do not change: the next slice's are on their way while this one is computed.
    const TableRows rows = on.puller.rows();
    if (own > 1) DT_TRY_STATUS(BeginStep(info.step, on));
    DT_TRY(const TableRows row_grads, Recorded(on.timeline, stage::kRunSlice, info.step,
                                               [&] { return on.engine.FinishSlice(rows); }));
    const TimelineSpan push(on.timeline, stage::kSendPush, info.step, slice->batch.slice);
    on.client.BeginPush({.step = info.step,
                         .slice = slice->batch.slice,
                         .slices = slices,
                         .rate_scale = info.rate_scale},
                        *slice, row_grads);
  }
  DT_TRY_STATUS(Exchange(info, on));

  // With all acknowledgements and the dense sums of everybody, nothing can be missing any more.
  DT_TRY_STATUS(Recorded(on.timeline, stage::kAwaitPushes, info.step,
                         [&] { return on.client.WaitForPushes(); }));
  DT_TRY_STATUS(Barrier(info, on));
  DT_TRY_STATUS(Recorded(on.timeline, stage::kComplete, info.step,
                         [&] { return on.client.Complete(info.step); }));

  // Servers update rows, and answer the next pull, while the dense parameters are updated here.
  DT_TRY_STATUS(BeginStep(info.step + 1, on));
  const TimelineSpan update(on.timeline, stage::kUpdate, info.step);
  DT_TRY_STATUS(on.engine.Update(RunInfoOf(info, on.engine, 0)));
  return on.engine.step_loss();
}

}  // namespace dt::worker
