// One step of training as one rank does it: the order of all stages. Read this first.
//
//   reader ─▶ pull ──────────▶ GiveRows ─▶ RowGrads ─▶ push    for each own slice of the step; what
//        └──▶ BeginSlice ────────┘             │               needs no rows runs while they come
//                                              └─▶ FinishExchange  dense sums, rows of tables here
//                                                    └─▶ barrier ─▶ Complete ─▶ Update
//
// The exchange begins as the last own slice makes its gradients; see engine.h.
// Servers apply a step once every rank is past its barrier; no rank pulls for the next step
// earlier. If a rank dies or fails between any two lines, then either nobody has applied the step,
// and it can be done again from unchanged rows and dense values, or everybody can: who has entered
// the barrier needs nobody for the rest. TrainProgress tells which of the two. If there is only one
// rank, nobody is left to do so: with overlap, its barrier and Complete come before FinishExchange,
// and its loss takes the job back to a checkpoint.
//
// Without overlap, a line begins when the one before has ended: pushes are acknowledged first.
#pragma once

#include <optional>
#include <span>

#include "common/base/status.h"
#include "worker/client/ps_client.h"
#include "worker/engine/engine.h"
#include "worker/exchange/team_link.h"
#include "worker/train/row_puller.h"

namespace dt::worker {

// How far a rank has come. Steps that are given up leave it as it was.
struct TrainProgress {
  Step step = 0;  // Every step before it is complete, and its update has been made here.
  // Set from the barrier of `step` on: what its update needs. Nothing else of the step is needed.
  std::optional<RunInfo> entered = {};
};

struct Stages {
  TrainProgress& progress;
  RowPuller& puller;
  PsClient& client;
  Engine& engine;
  TeamLink& team;
  bool overlap = true;
  Timeline* timeline = nullptr;  // Null: nothing is recorded.
};

struct StepInfo {
  Step step = 0;
  uint32_t samples = 0;                        // In the whole step.
  std::span<const uint32_t> slice_owner = {};  // By slice: the team.
  float lr_scale = 1;
};

// Sends the pull of the step's first own slice. With overlap, it is called before the first step of
// an order; for later steps, the step before does it.
Status BeginStep(Step step, Stages& on);
// Afterwards the engine has the step's losses. After an error the engine is to be abandoned, unless
// the barrier was entered.
Status TrainStep(const StepInfo& info, Stages& on);

}  // namespace dt::worker
