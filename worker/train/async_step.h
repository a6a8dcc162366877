// A step of an asynchronous worker (train.staleness above 0), in two parts.
//
//   Begin   pull, dense blocks too ─▶ BeginSlice, GiveRows
//   End     RowGrads ─▶ l2, clipping (Update) ─▶ push, dense too
//
// A step begins on another lane before the one before it has ended: its first nodes run beside the
// last ones of that, beside its update and its push. Nothing here waits for another worker: the
// servers answer the pull when the staleness allows it. A step sees every push of its own worker
// that was acknowledged before its pull was sent.
#pragma once

#include <span>

#include "common/base/status.h"
#include "worker/client/ps_client.h"
#include "worker/collective/collective.h"
#include "worker/engine/engine.h"
#include "worker/train/dense_blocks.h"
#include "worker/train/row_puller.h"

namespace dt::worker {

// What one step under way has to itself: values of the dense parameters among it.
struct AsyncLane {
  Engine& engine;
  DenseBlocks& dense;
  const RowPuller::Slice* slice = nullptr;        // Of the step.
  std::vector<std::span<const float>> changes{};  // By table of the graph, then the dense ones.
};

struct AsyncStages {
  RowPuller& puller;
  PsClient& client;
  Collective& alone;           // This worker and nobody else.
  std::span<AsyncLane> lanes;  // One or two; a step has lane number step modulo their number.
  bool overlap = true;         // False: a step has ended, pushes included, before the next begins.
  Timeline* timeline = nullptr;  // Null: nothing is recorded.

  AsyncLane& LaneOf(Step step) { return lanes[step % lanes.size()]; }
};

struct AsyncStepInfo {
  ProcessId worker;
  Step step = 0;        // This worker's own.
  Step first_step = 0;  // Of the order.
  float lr_scale = 1;
};

struct AsyncStepResult {
  uint32_t samples = 0;
  // By loss: its mean over the samples; empty without any. Valid until the lane's next step ends.
  std::span<const double> losses{};
};

// Takes the rows whose pull was begun first. REQUIRES: there is one, of this step; its lane's step
// before has ended.
Status BeginAsyncStep(const AsyncStepInfo& info, AsyncStages& on);
// REQUIRES: the steps before have ended.
Result<AsyncStepResult> EndAsyncStep(const AsyncStepInfo& info, AsyncStages& on);

}  // namespace dt::worker
