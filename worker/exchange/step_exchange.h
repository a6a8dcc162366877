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

  // Joins the slices of all ranks; owner[k] is the team that ran slice k. The results go to
  // `bindings`, and rows of new keys to `tables`. Errors: those of Collective::ExchangeSlices and
  // RowExchange::Join; Unavailable, if a sum is not finite.
  struct StepSlices {
    std::span<const uint32_t>
        owner;  // By slice: the team; ranks are teams if they have one worker.
    Step step = 0;
    WorkerTables* tables = nullptr;  // Needed by plans that sum rows.
  };
  Status Join(Collective& collective, const StepSlices& slices, Bindings& bindings);
  // By loss of the graph: its mean over the samples of the step joined last, equal on all ranks.
  std::span<const double> step_losses() const { return step_losses_; }

 private:
  // The values that the same positions of a team hold together, with their results.
  struct Bucket {
    Bucket(const Plan& plan, const SlicePacks::Holders& holders, Accelerator* accelerator)
        : packs(plan, holders, accelerator), summed_memory(accelerator) {}
    SlicePacks packs;
    AlignedBuffer summed_memory, gathered_memory;
    std::span<float> summed, gathered;  // gathered: [terms of all slices, floats of one].
    std::vector<uint32_t> owner;        // By term of all slices: the rank.
    std::vector<uint32_t> ranks;        // The members; empty in teams of one: all.
    std::vector<RowsPiece> rows;        // The pieces, if members sum their own rows only.
  };
  struct LossPlace {
    const Bucket* bucket = nullptr;
    size_t offset = 0;
  };
  Status OpenBucket(const Node& node);
  LossPlace PlaceOf(const LossSpec& loss) const;
  void FindRanks(const Collective& collective, std::span<const uint32_t> owner, Bucket& bucket);
  void SpreadResults(const Bucket& bucket, Bindings& bindings) const;
  void AddLosses();

  const Plan& plan_;
  Accelerator* const accelerator_;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  RowExchange rows_;
  std::vector<LossPlace> loss_places_;  // By loss.
  std::vector<double> step_losses_;
};

}  // namespace dt::worker
