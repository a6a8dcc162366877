// Orders of the scheduler, and the results of their work. A process carries out its orders one
// after the other.
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
#include "common/cluster/stream_cut.h"
#include "common/cluster/table_report.h"
#include "common/cluster/taken_parts.h"

namespace dt {

struct TrainOrder {
  uint64_t epoch = 0;
  Step epoch_first_step = 0;
  Step first_step = 0, end_step = 0;
  float lr_scale = 1;
  // By slice: the team, which is rank / workers of a team. Asynchronous training: the process; 0,
  // which is none, if the slice is done.
  std::vector<uint32_t> slice_owner;
  Step settled_step = 0;  // Every step before is complete.
  // A job that trains on a stream: the messages of the order. Each step has the next part of those
  // of every partition, and slice k those of the partitions that OwnerOf deals to it.
  StreamCut cut = {};
  DT_FIELDS(epoch, epoch_first_step, first_step, end_step, lr_scale, slice_owner, settled_step, cut)
};
struct TrainDone {
  Step end_step = 0;
  uint64_t samples = 0;  // Samples of all workers in this order.
  // By loss: the sum over the order's steps of mean loss × samples. Equal on all workers.
  std::vector<double> loss_sums;
  // By loss: the mean over the order's first step, before that step's update. Empty if this worker
  // had no samples in that step.
  std::vector<double> first_losses;
  double seconds = 0;
  DT_FIELDS(end_step, samples, loss_sums, first_losses, seconds)
};

enum class SplitKind : uint8_t { kTrain, kValid, kTest };
// Carried out at the step boundary before `step`. Batch b goes to rank b mod workers.
struct EvaluateOrder {
  Step step = 0;
  SplitKind split = SplitKind::kValid;
  StreamCut cut = {};  // Not empty: these messages, instead of a split. They are trained on next.
  DT_FIELDS(step, split, cut)
};

// For workers and servers, at a step boundary. Workers write their parts of dense parameters, each
// server its shards.
struct SaveOrder {
  Step step = 0;
  std::string name;  // A folder in checkpoint.dir, which exists already.
  DT_FIELDS(step, name)
};
struct SaveDone {
  std::vector<CheckpointFile> files;
  // The state to save is fixed, so training may go on; other files follow in a RowsWrittenMessage.
  bool writing = false;
  DT_FIELDS(files, writing)
};

struct LoadOrder {
  Step step = 0;          // The clock after loading.
  std::string folder;     // The process only reads it. May be "" if the job begins with files.
  Generation generation;  // The new generation, which all later messages carry.
  bool begins = false;    // The job begins with `taken`; else it goes on with its own checkpoint.
  TakenParts taken = {};
  DT_FIELDS(step, folder, generation, begins, taken)
};
struct LoadDone {
  DT_FIELDS()
};

// The checksum of dense parameters and their optimizer state: the sum of a hash for each element.
// Every worker reports that of its position in a team, without what positions before it have, and
// that of what it alone has. So the sum over different parts does not depend on who has what.
struct DenseSum {
  uint32_t part = 0;  // The position, or the workers of a team plus the rank.
  uint64_t low = 0, high = 0;
  DT_FIELDS(part, low, high)
  friend bool operator==(const DenseSum&, const DenseSum&) = default;
};
struct FinishOrder {
  DT_FIELDS()
};
struct FinishDone {
  // The tables with rows in this process. Servers: of the shards whose chains end there.
  std::vector<TableReport> tables;
  std::vector<DenseSum> dense;  // Workers.
  ProcessStats stats;
  std::vector<CopySum> copies;  // Servers: of all shards of which there are several copies.
  MapVersion map;               // Servers: the map by which the report was made.
  DT_FIELDS(tables, dense, stats, copies, map)
};

using Order = std::variant<TrainOrder, EvaluateOrder, SaveOrder, LoadOrder, FinishOrder>;
using OrderResult = std::variant<TrainDone, EvaluateDone, SaveDone, LoadDone, FinishDone>;

// Parts [begin, end) of a TrainOrder, for this worker alone; an empty range means that no part is
// left. Part p is the slice of rank p mod workers in step first_step + p / workers.
struct SplitMessage {
  uint64_t order = 0;
  uint64_t begin = 0, end = 0;
  uint64_t number = 0;  // SplitRequestMessage::number of the request.
  DT_FIELDS(order, begin, end, number)
  bool IsSound() const { return begin <= end; }
};

}  // namespace dt
