// The exchange of a step: packs what each own slice leaves for the joins, joins the packs of all
// workers bucket by bucket, and puts the results where the step's nodes read them. The thread of
// communication calls Join, the train thread everything else.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"
#include "worker/collective/communicator.h"
#include "worker/exchange/row_exchange.h"
#include "worker/exchange/slice_packs.h"
#include "worker/exchange/team_link.h"
#include "worker/memory/aligned_buffer.h"
#include "worker/memory/bindings.h"

namespace dt::worker {

class StepExchange {
 public:
  // `plan` and `accelerator` outlive it; `accelerator` may be null if nothing exchanged is copied
  // from or to one.
  StepExchange(const Plan& plan, Accelerator* accelerator);
  // Errors: Internal, if the plan does not exchange its losses, or names no positions of its team.
  Status Open();

  // owner[k] is the team that runs slice k. `tables` is needed by plans that sum rows. REQUIRES:
  // the step before has finished.
  void BeginStep(Step step, std::span<const uint32_t> owner, WorkerTables* tables);
  // Adds zeros, for a slice without samples.
  void AddNothing(SliceIndex slice);
  // Called before the slice runs: its nodes then write what is exchanged straight into its pack.
  void PlacePieces(const LookupPlan& slice, Bindings& bindings);

  // Joins a bucket when all own slices have left their values for it. Joined rows go to `bindings`,
  // and those of new keys to the tables. Errors: those of the communicator and of
  // RowExchange::Join.
  Status Join(const Subgraph& bucket, const TeamLink& team, Bindings& bindings);
  // After the last join: puts the results into `bindings`. Errors: Unavailable, if a sum is not
  // finite.
  Status Finish(Bindings& bindings);
  // By loss of the graph: its mean over the samples of the step finished last, equal on all
  // workers.
  std::span<const double> step_losses() const { return step_losses_; }

 private:
  struct Bucket {
    Bucket(const Plan& plan, const Subgraph& nodes, Accelerator* accelerator)
        : subgraph(nodes), packs(plan, nodes, accelerator), summed_memory(accelerator) {}
    const Subgraph& subgraph;
    SlicePacks packs;
    AlignedBuffer summed_memory, gathered_memory;
    std::span<float> summed, gathered;  // gathered: [terms of all slices, floats of one].
    bool bf16 = false;                  // Sums travel in bf16.
    AlignedBuffer wire_memory;          // By own term the pack in bf16, then the sums.
    RankGroup members;
    std::vector<uint32_t> owner;  // By term of all slices: the member.
    std::vector<std::span<const std::byte>> terms;
    std::vector<Terms::Range> ranges;  // If members sum their own rows only.
  };
  // A value that goes into a pack.
  struct Source {
    Bucket* bucket = nullptr;
    const SlicePacks::Piece* piece = nullptr;
  };
  struct LossPlace {
    const Bucket* bucket = nullptr;
    size_t offset = 0;
  };
  Status OpenBucket(const Subgraph& subgraph);
  void FindSources();
  LossPlace PlaceOf(const LossSpec& loss) const;
  void FindMembers(const TeamLink& team, Bucket& bucket) const;
  void CopyAgain(Bucket& bucket) const;
  Status Sum(const CollectiveCall& call, const TeamLink& team, Bucket& bucket);
  Status SumInBf16(const CollectiveCall& call, const TeamLink& team, Bucket& bucket);
  Status Gather(const CollectiveCall& call, const TeamLink& team, Bucket& bucket);
  void SpreadResults(const Bucket& bucket, Bindings& bindings) const;

  const Plan& plan_;
  Accelerator* const accelerator_;
  std::vector<std::unique_ptr<Bucket>> buckets_;
  RowExchange rows_;
  // By value: the pack into which its kernel writes; others get copies of it.
  std::vector<Source> sources_;
  std::vector<LossPlace> loss_places_;  // By loss.
  std::vector<double> step_losses_;
  // Of the current step.
  Step step_ = 0;
  std::vector<uint32_t> owner_;
  WorkerTables* tables_ = nullptr;
  std::vector<Outgoing> send_;
  std::vector<Incoming> receive_;
};

}  // namespace dt::worker
