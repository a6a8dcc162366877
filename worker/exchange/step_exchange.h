// The exchange of a step: packs what each own slice leaves for it, joins the packs of all ranks,
// and puts the results where the step's nodes read them. Owned by the train thread.
#pragma once

#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"
#include "worker/collective/collective.h"
#include "worker/exchange/row_exchange.h"
#include "worker/exchange/slice_packs.h"
#include "worker/memory/aligned_buffer.h"
#include "worker/memory/bindings.h"

namespace dt::worker {

class StepExchange {
 public:
  // `plan` and `accelerator` outlive it; `accelerator` may be null if nothing exchanged is copied
  // from or to one.
  StepExchange(const Plan& plan, Accelerator* accelerator);
  // Errors: Internal, if the plan does not exchange its losses.
  Status Open();

  // Adds zeros, for a slice without samples.
  void AddNothing(SliceIndex slice);
  // Called before the slice runs: its nodes then write what is exchanged straight into its pack.
  void PlacePieces(const LookupPlan& slice, Bindings& bindings);
  // Called after the slice has run: copies what its nodes could not write into the pack.
  void CopyPieces(SliceIndex slice, const Bindings& bindings);

  // Joins the slices of all ranks; owner[k] is the rank that ran slice k. The results go to
  // `bindings`, and rows of new keys to `tables`. Errors: those of Collective::ExchangeSlices and
  // RowExchange::Join; Unavailable, if a sum is not finite.
  struct StepSlices {
    std::span<const uint32_t> owner;
    Step step = 0;
    WorkerTables* tables = nullptr;  // Needed by plans that sum rows.
  };
  Status Join(Collective& collective, const StepSlices& slices, Bindings& bindings);
  // By loss of the graph: its mean over the samples of the step joined last, equal on all ranks.
  std::span<const double> step_losses() const { return step_losses_; }

 private:
  void SpreadResults(Bindings& bindings);

  const Plan& plan_;
  SlicePacks packs_;
  RowExchange rows_;
  AlignedBuffer summed_memory_, gathered_memory_;
  std::span<float> summed_, gathered_;  // Over all ranks; gathered_: [slices, floats of one].
  std::vector<size_t> loss_pieces_;     // By loss: the index of its piece.
  std::vector<double> step_losses_;
};

}  // namespace dt::worker
