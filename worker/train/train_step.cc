#include "worker/train/train_step.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/failpoint.h"
#include "common/runtime/work_span.h"
#include "worker/train/stage_spans.h"

namespace dt::worker {
namespace {

constinit WorkKind kTrainWork{"worker: the order of stages"};

RunInfo RunInfoOf(const StepInfo& info, const Engine& engine, uint64_t first_sample) {
  return {.seed = engine.plan().seed,
          .step = info.step,
          .first_sample = first_sample,
          .step_samples = info.samples,
          .lr_scale = info.lr_scale,
          .training = true};
}

Status FinishExchange(const StepInfo& info, Stages& on) {
  PassFailpoint("exchange", info.step);
  const TimelineSpan wait(on.timeline, stage::kAwaitExchange, info.step);
  return on.engine.FinishExchange();
}

// A single worker awaits nobody, and its engine may be at the exchange.
Status Barrier(const StepInfo& info, Stages& on) {
  PassFailpoint("barrier", info.step);
  const TimelineSpan wait(on.timeline, stage::kAwaitBarrier, info.step);
  const TimelineSpan span(on.timeline, stage::kBarrier, info.step);
  if (on.team.all.size() == 1) return OkStatus();
  return on.team.communicator->Barrier(
      {.group = on.team.all, .name = "barrier", .step = info.step});
}

Status WaitForPushes(const StepInfo& info, Stages& on) {
  PassFailpoint("pushed", info.step);
  return Recorded(on.timeline, stage::kAwaitPushes, info.step,
                  [&] { return on.client.WaitForPushes(); });
}

// Begins the slice whose pull was sent first, and gives it its rows. Nodes that need no rows run
// while the rows are on their way.
Result<const LookupPlan*> StartSlice(const StepInfo& info, bool last, Stages& on) {
  const auto begin = [&](const LookupPlan& slice) {
    DT_CHECK(slice.batch.step == info.step);
    return on.engine.BeginSlice(slice, RunInfoOf(info, on.engine, slice.batch.first_sample));
  };
  PassFailpoint("slice", info.step);
  if (!on.overlap) DT_TRY_STATUS(BeginStep(info.step, on));
  DT_CHECK(on.puller.next() != nullptr);
  if (on.overlap) DT_TRY_STATUS(begin(*on.puller.next()));
  DT_TRY(const RowPuller::Slice* const slice, on.puller.Finish());
  if (!on.overlap) DT_TRY_STATUS(begin(*slice->plan));
  // Rows of one step do not change, so the next slice's are pulled while this one is computed.
  if (on.overlap && !last) DT_TRY_STATUS(BeginStep(info.step, on));
  on.engine.GiveRows(slice->rows);
  return slice->plan.get();
}

// Pushes the gradients of the slice started first.
Status PushSlice(const StepInfo& info, const LookupPlan& slice, Stages& on) {
  DT_TRY(const RowSpans row_grads,
         Recorded(on.timeline, stage::kRunSlice, info.step, [&] { return on.engine.RowGrads(); }));
  if (!on.overlap) DT_TRY_STATUS(on.engine.FinishUpdate());
  {
    PassFailpoint("push", info.step);
    const TimelineSpan push(on.timeline, stage::kSendPush, info.step, slice.batch.slice);
    // Each worker of a team pushes what its own samples contribute.
    const Plan& plan = on.engine.plan();
    on.client.BeginPush({.step = info.step,
                         .slice = slice.batch.slice * plan.devices + plan.position,
                         .slices = static_cast<uint32_t>(info.slice_owner.size()) * plan.devices,
                         .lr_scale = info.lr_scale},
                        slice, row_grads);
  }
  return on.overlap ? OkStatus() : WaitForPushes(info, on);
}

// If the engine takes two slices, one starts before the one before it has its gradients.
Status OwnSlices(const StepInfo& info, Stages& on) {
  const LookupPlan* under_way = nullptr;
  const uint32_t team = on.team.place.team;
  for (auto left = std::ranges::count(info.slice_owner, team); left > 0; --left) {
    if (under_way != nullptr && on.engine.slices_at_once() == 1) {
      DT_TRY_STATUS(PushSlice(info, *std::exchange(under_way, nullptr), on));
    }
    DT_TRY(const LookupPlan* const started, StartSlice(info, left == 1, on));
    if (under_way != nullptr) DT_TRY_STATUS(PushSlice(info, *under_way, on));
    under_way = started;
  }
  return under_way != nullptr ? PushSlice(info, *under_way, on) : OkStatus();
}

// From now on servers update rows. With overlap, they also get and answer the next pull while the
// rest of the step runs here.
Status Complete(const StepInfo& info, Stages& on) {
  PassFailpoint("complete", info.step);
  DT_TRY_STATUS(Recorded(on.timeline, stage::kComplete, info.step,
                         [&] { return on.client.Complete(info.step); }));
  return on.overlap ? BeginStep(info.step + 1, on) : OkStatus();
}

// Starts the dense update; without overlap, waits for it.
Status Update(const RunInfo& update, Stages& on) {
  PassFailpoint("update", update.step);
  const TimelineSpan span(on.timeline, stage::kUpdate, update.step);
  DT_TRY_STATUS(on.engine.Update(update));
  PassFailpoint("updated", update.step);
  on.progress = {.step = update.step + 1};
  return on.overlap ? OkStatus() : on.engine.FinishUpdate();
}

// Once all are past the barrier the step is complete, so it is updated here, whatever keeps the
// next one from beginning.
Status PassBarrier(const StepInfo& info, Stages& on) {
  const RunInfo update = RunInfoOf(info, on.engine, 0);
  DT_TRY_STATUS(WaitForPushes(info, on));
  on.progress.entered = update;
  DT_TRY_STATUS(Barrier(info, on));
  const Status completed = Complete(info, on);
  const Status updated = Update(update, on);
  return completed.ok() ? updated : completed;
}

}  // namespace

Status BeginStep(Step step, Stages& on) {
  PassFailpoint("pull", step);
  return on.puller.Begin(step, PullMode::kTrain);
}

Status TrainStep(const StepInfo& info, Stages& on) {
  const TimelineSpan whole(on.timeline, stage::kStep, info.step);
  const WorkSpan work(kTrainWork);
  on.engine.BeginStep(info.step, info.slice_owner);
  DT_TRY_STATUS(OwnSlices(info, on));
  // When all pushes are acknowledged and everybody has the dense sums, nothing can be missing any
  // more. A single worker does not wait for the sums: if it is lost, nobody is left who could go on
  // with them.
  if (!on.overlap || on.team.all.size() > 1) {
    DT_TRY_STATUS(FinishExchange(info, on));
    return PassBarrier(info, on);
  }
  DT_TRY_STATUS(WaitForPushes(info, on));
  DT_TRY_STATUS(Barrier(info, on));
  DT_TRY_STATUS(Complete(info, on));
  DT_TRY_STATUS(FinishExchange(info, on));
  return Update(RunInfoOf(info, on.engine, 0), on);
}

}  // namespace dt::worker
