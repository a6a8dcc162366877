// One step of training as one rank does it: the order of all stages. Read this first.
//
//   reader ─▶ pull ──────────▶ GiveRows ─▶ RowGrads ─▶ push    for each own slice of the step; what
//        └──▶ BeginSlice ────────┘             │               needs no rows runs while they come
//                                              └─▶ Exchange    dense sums, rows of tables here
//                                                    └─▶ barrier ─▶ Complete ─▶ Update
//
// Servers apply a step once every rank is past its barrier; no rank pulls for the next step before.
// A rank dies or fails between any two lines: then nobody has applied the step, or everybody can.
// With one rank nobody is left to: with overlap its barrier and Complete come before Exchange, and
// its loss takes the job back to a checkpoint.
//
// Without overlap a line begins when the one before has ended: what is pushed is acknowledged, and
// the update stands before Complete.
#pragma once

#include <span>

#include "common/base/status.h"
#include "worker/client/ps_client.h"
#include "worker/collective/collective.h"
#include "worker/engine/engine.h"
#include "worker/train/row_puller.h"

namespace dt::worker {

struct Stages {
  RowPuller& puller;
  PsClient& client;
  Engine& engine;
  Collective& collective;
  bool overlap = true;
  Timeline* timeline = nullptr;  // Null: nothing is recorded.
};

struct StepInfo {
  Step step = 0;
  uint32_t samples = 0;                        // Of the whole step.
  std::span<const uint32_t> slice_owner = {};  // Rank by slice.
  float lr_scale = 1;
};

// Sends the pull of the step's first own slice. With overlap, before the first step of an order;
// later ones are begun by the step before.
Status BeginStep(Step step, Stages& on);
// Afterwards the engine has the step's losses.
Status TrainStep(const StepInfo& info, Stages& on);

}  // namespace dt::worker
