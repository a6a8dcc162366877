// Orders of the scheduler and what their work gives. A process carries out its orders one after the
// other.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/base/fields.h"
#include "common/base/ids.h"
#include "common/cluster/checkpoint_file.h"
#include "common/cluster/evaluation_result.h"
#include "common/cluster/process_stats.h"
#include "common/cluster/table_report.h"

namespace dt {

struct TrainOrder {
  uint64_t epoch = 0;
  Step epoch_first_step = 0;
  Step first_step = 0, end_step = 0;
  float lr_scale = 1;
  std::vector<uint32_t> slice_owner;  // Rank by slice.
  DT_FIELDS(epoch, epoch_first_step, first_step, end_step, lr_scale, slice_owner)
};
struct TrainDone {
  Step end_step = 0;
  uint64_t samples = 0;  // Of all workers, in this order.
  // By loss of the job: the sum over steps of its mean × samples of the step, equal on all workers.
  std::vector<double> loss_sums;
  // By loss: its mean over the order's first step, before that step's update. Empty if this worker
  // had no samples in it.
  std::vector<double> first_losses;
  double seconds = 0;
  DT_FIELDS(end_step, samples, loss_sums, first_losses, seconds)
};

enum class SplitKind : uint8_t { kTrain, kValid, kTest };
// At the step boundary where every step before `step` is done. Batch b goes to rank b mod workers.
struct EvaluateOrder {
  Step step = 0;
  SplitKind split = SplitKind::kValid;
  DT_FIELDS(step, split)
};

// To workers and servers alike, at a step boundary. Rank 0 writes "dense.bin"; server i its shards.
struct SaveOrder {
  Step step = 0;
  std::string name;  // A folder in checkpoint.dir, which exists already.
  DT_FIELDS(step, name)
};
struct SaveDone {
  std::vector<CheckpointFile> files;
  // Servers: what is to be saved is fixed, and training may go on; the files follow in a
  // RowsWrittenMessage.
  bool writing = false;
  DT_FIELDS(files, writing)
};

struct LoadOrder {
  Step step = 0;          // The clock after loading.
  std::string folder;     // Never written to.
  Generation generation;  // The new generation, in every message from now on.
  DT_FIELDS(step, folder, generation)
};
struct LoadDone {
  DT_FIELDS()
};

struct FinishOrder {
  DT_FIELDS()
};
struct FinishDone {
  std::vector<TableReport> tables;  // Of those with rows here.
  std::string dense_checksum;       // Workers.
  ProcessStats stats;
  DT_FIELDS(tables, dense_checksum, stats)
};

using Order = std::variant<TrainOrder, EvaluateOrder, SaveOrder, LoadOrder, FinishOrder>;
using OrderResult = std::variant<TrainDone, EvaluateDone, SaveDone, LoadDone, FinishDone>;

// Parts [begin, end) of a TrainOrder, for this worker alone; none: nothing is left. Part p is the
// slice of rank p mod workers of step first_step + p / workers.
struct SplitMessage {
  uint64_t order = 0;
  uint64_t begin = 0, end = 0;
  DT_FIELDS(order, begin, end)
  bool IsSound() const { return begin <= end; }
};

}  // namespace dt
