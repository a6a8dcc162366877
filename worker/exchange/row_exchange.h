// The sparse half of a step's exchange: for the plan's sum_rows nodes, the keys and row gradients
// that each own slice has of tables on the worker go to all ranks, which then make the same rows
// and the same sums. Kernels write gradients straight into a slice's message:
//
//   u64 number of keys [pieces] | keys of each piece | gradients of each piece, f32 [keys, dim]
//
// The thread of communication calls Join, the train thread everything else.
#pragma once

#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/plan/plan.h"
#include "worker/collective/communicator.h"
#include "worker/exchange/row_sum.h"
#include "worker/lookup/lookup_plan.h"
#include "worker/memory/aligned_buffer.h"
#include "worker/memory/bindings.h"
#include "worker/tables/worker_tables.h"

namespace dt::worker {

// Limit for the message of a slice.
inline constexpr uint64_t kSliceBytesMax = uint64_t{1} << 32;

class RowExchange {
 public:
  // `plan` outlives it. With an accelerator, messages are pinned for copies from it.
  RowExchange(const Plan& plan, Accelerator* accelerator);
  // Errors: Internal, if the plan sums rows of no table on the worker, or rows that nodes of slices
  // do not make.
  Status Open();

  // See StepExchange.
  void AddNothing(SliceIndex slice);
  void PlacePieces(const LookupPlan& slice, Bindings& bindings);

  struct Joined {
    const CollectiveCall& call;  // Over all ranks.
    Communicator& communicator;
    std::span<const uint32_t> owner;  // By slice: the rank.
    WorkerTables* tables = nullptr;
  };
  // Makes rows for all slices' keys in the tables, and puts sums, numbers and steps_since_update
  // where the step's nodes read them. Errors: those of Communicator and WorkerTables::BindStep;
  // Internal, if a message has another form or more than kSliceBytesMax; Unavailable, if a sum is
  // not finite.
  Status Join(const Joined& slices, Bindings& bindings);

 private:
  struct Piece {
    uint32_t table = kNone;  // Index into Graph::tables.
    size_t dim = 0;
    ValueIndex in = kNone;
    ValueIndex sums = kNone, numbers = kNone, steps_since_update = kNone;
    RowSum sum;
    std::vector<std::span<const Key>> keys;  // By slice, as are grads.
    std::vector<std::span<const float>> grads;
  };
  // The size of a message with this many keys by piece.
  uint64_t BytesFor(std::span<const uint64_t> keys) const;
  std::byte* Begin(SliceIndex slice, size_t bytes);
  Status GatherSizes(const Joined& slices);
  Status GatherMessages(const Joined& slices);
  void SendToOthers(const Joined& slices, std::span<const std::byte> bytes);
  Status Exchange(const Joined& slices, SliceIndex part);
  Status Read(std::span<const uint32_t> owner);
  Status SumPiece(Piece& piece, Step step, const TableView& table, const Bindings& bindings) const;

  const Plan& plan_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> counts_;         // Keys by piece, of the current message.
  std::vector<AlignedBuffer> messages_;  // By slice, as are own_, all_ and sizes_.
  std::vector<std::span<const std::byte>> own_, all_;
  std::vector<uint64_t> sizes_;
  std::vector<std::byte> gathered_;  // Messages of other ranks; grows and never shrinks.
  std::vector<Outgoing> send_;
  std::vector<Incoming> receive_;
};

}  // namespace dt::worker
