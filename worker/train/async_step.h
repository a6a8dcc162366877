// A step of an asynchronous worker (train.staleness above 0), in two parts.
//
//   Begin   pull, dense blocks too ─▶ BeginSlice, GiveRows
//   End     RowGrads ─▶ l2, clipping (Update) ─▶ push, dense too
//
// A step begins on another lane before the step before it has ended: its first nodes run beside the
// last nodes, the update and the push of that one. Nothing here waits for another worker: the
// servers answer the pull when the staleness allows it. A step sees every push of its own worker
// that was acknowledged before its pull was sent.
#pragma once

#include <functional>
#include <span>

#include "common/base/status.h"
#include "worker/client/ps_client.h"
#include "worker/engine/engine.h"
#include "worker/train/dense_blocks.h"
#include "worker/train/row_puller.h"

namespace dt::worker {

// The state of one step under way, with its own values of the dense parameters.
struct AsyncLane {
  Engine& engine;
  DenseBlocks& dense;
  const RowPuller::Slice* slice = nullptr;  // The step's slice.
  // To be pushed: by table of the graph, then the dense tables.
  std::vector<std::span<const float>> changes{};
};

struct AsyncStages {
  RowPuller& puller;
  PsClient& client;
  std::span<AsyncLane> lanes;  // One or two; a step uses the lane of its number modulo theirs.
  std::function<float(Step)> lr_scale;
  bool overlap = true;           // False: a step ends, pushes included, before the next one begins.
  Timeline* timeline = nullptr;  // Null: nothing is recorded.

  AsyncLane& LaneOf(uint64_t number) { return lanes[number % lanes.size()]; }
};

struct AsyncStepInfo {
  ProcessId worker;
  Step order = 0;       // First step of the order.
  uint64_t number = 0;  // Counts this worker's steps in the order and view, from 0.
  Step settled = 0;     // As in SenderTurn.
  uint32_t slices = 1;  // So many make a step of the order; each is pushed by one worker.

  Step count() const { return order + number; }  // For the timeline.
};

struct AsyncStepResult {
  Step step = 0;  // The step of the slice.
  SliceIndex slice = 0;
  uint32_t samples = 0;
  uint64_t acknowledged = 0;  // Pushes with lower numbers are.
  // By loss: its mean over the samples; empty without any. Valid until the lane's next step ends.
  std::span<const double> losses{};
};

// Takes the rows whose pull was begun first. REQUIRES: they are of this step, and the lane's step
// before has ended.
Status BeginAsyncStep(const AsyncStepInfo& info, AsyncStages& on);
// REQUIRES: all earlier steps have ended.
Result<AsyncStepResult> EndAsyncStep(const AsyncStepInfo& info, AsyncStages& on);

}  // namespace dt::worker
