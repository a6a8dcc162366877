// One step of a worker that runs apart from the others (train.staleness above 0).
//
//   reader ─▶ pull, dense blocks too ─▶ RunSlice ─▶ l2, clipping (Update) ─▶ push, dense too
//
// Nothing here waits for another worker: the servers answer the pull when the staleness allows it.
// The pulls of the next steps are under way meanwhile, and so are the last pushes: a step sees
// every push of its own worker that was acknowledged before its pull was sent.
#pragma once

#include "common/base/status.h"
#include "worker/client/ps_client.h"
#include "worker/collective/collective.h"
#include "worker/engine/engine.h"
#include "worker/train/dense_blocks.h"
#include "worker/train/row_puller.h"

namespace dt::worker {

struct AsyncStages {
  RowPuller& puller;
  PsClient& client;
  Engine& engine;
  Collective& alone;  // This worker and nobody else.
  DenseBlocks& dense;
  Timeline* timeline = nullptr;  // Null: nothing is recorded.
};

struct AsyncStepInfo {
  ProcessId worker;
  Step step = 0;        // This worker's own.
  Step first_step = 0;  // Of the order.
  float rate_scale = 1;
};

struct AsyncStepResult {
  uint32_t samples = 0;
  double loss = 0;  // Mean over the samples.
};

// The step whose pull was begun first. REQUIRES: there is one.
Result<AsyncStepResult> AsyncTrainStep(const AsyncStepInfo& info, AsyncStages& on);

}  // namespace dt::worker
