#include "scheduler/job/evaluation_run.h"

#include "common/base/check.h"
#include "scheduler/results/merge_results.h"

namespace dt::scheduler {

Result<RunState> EvaluationRun::HandOut() {
  if (!job_.orders.empty()) return RunState::kGoing;
  const JobOptions::Checkpoint& from = *job_.options.checkpoint;
  const Step step = from.manifest.schedule.step;
  switch (next_) {
    case Next::kLoad: {
      DT_TRY(Order load, LoadInNextGeneration(job_, step, from.folder));
      Issue(job_, std::move(load), Audience::kWorkersAndServers);
      next_ = Next::kEvaluate;
      return RunState::kGoing;
    }
    case Next::kEvaluate:
      Issue(job_, EvaluateOrder{step, on_test_data() ? SplitKind::kTest : SplitKind::kValid},
            Audience::kWorkers);
      next_ = Next::kFinish;
      return RunState::kGoing;
    case Next::kFinish:
      Issue(job_, FinishOrder{}, Audience::kWorkersAndServers);
      next_ = Next::kNothing;
      return RunState::kGoing;
    case Next::kNothing:
      return RunState::kFinished;
  }
  DT_UNREACHABLE();
}

Status EvaluationRun::OnCompleted(TimePoint now, OrderTracker::Completed done) {
  if (const auto* load = std::get_if<LoadOrder>(&done.order.what)) NoteResumed(job_, now, *load);
  const auto* const evaluate = std::get_if<EvaluateOrder>(&done.order.what);
  if (evaluate == nullptr) return OkStatus();
  DT_TRY(metrics_, MergeEvaluation(done.TakeOutcomes<EvaluateDone>(), job_.options.job.model.losses,
                                   job_.options.job.data.by_slices));
  LogEvaluation(*evaluate, *metrics_);
  return OkStatus();
}

}  // namespace dt::scheduler
