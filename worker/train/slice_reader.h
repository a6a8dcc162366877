// Reads slices: gathers the samples and finds the distinct keys. It does so ahead of their use, on
// a thread of its own that keeps a bounded number of finished plans waiting, or when they are asked
// for.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/metrics/timeline.h"
#include "common/runtime/bounded_queue.h"
#include "worker/data/dataset.h"
#include "worker/lookup/lookup_planner.h"

namespace dt::worker {

// Plans that are used again, with their memory. Any thread.
using SparePlans = BoundedQueue<std::unique_ptr<LookupPlan>>;

// Names the next slice: fills plan.rows, and plan.batch except its columns; false after the last
// slice.
using NextSlice = std::function<Result<bool>(LookupPlan& plan)>;

class SliceReader {
 public:
  struct Options {
    const Dataset& data;
    const Plan& plan;
    uint32_t shards = 1;  // Number of the job's shards.
    std::vector<uint32_t> wire_tables;
    std::vector<DenseBlockTable> fixed;
    LookupFor purpose = LookupFor::kTrain;
    SparePlans& spare;
    // Called while waiting, on the caller's thread; not OK ends the wait.
    std::function<Status()> interrupted;
    NextSlice next;                // Called on the thread that reads.
    bool ahead = true;             // False: each slice is read by Next.
    Timeline* timeline = nullptr;  // Null: nothing is recorded.
  };
  explicit SliceReader(Options options);
  ~SliceReader();

  // The next slice, in order; nullptr after the last. For one thread. Errors: Malformed naming the
  // row, if the loss cannot take a label; those of Options::next; the status that interrupted it.
  Result<std::unique_ptr<LookupPlan>> Next();
  // The next slice, if it is ready; otherwise nothing: ask again.
  std::optional<std::unique_ptr<LookupPlan>> TryNext();
  // Gives the plan's memory back.
  void Recycle(std::unique_ptr<LookupPlan> plan);

 private:
  struct Item {
    Status status;
    std::unique_ptr<LookupPlan> plan;  // nullptr: the end.
  };
  void Run();
  Item Read();

  const Options options_;
  LookupPlanner planner_;
  std::vector<uint32_t> whole_columns_;  // Columns whose ids nodes read as numbers of rows.
  BoundedQueue<Item> ready_{3};
  bool at_end_ = false;  // Used by the consumer only.
  // Runs if slices are read ahead. Declared last: starts when the rest exists.
  std::jthread thread_;
};

// Checks that each loss can take its labels: 0 and 1, or the numbers of its classes. Errors:
// Malformed naming column and row.
Status CheckLabels(const Graph& graph, const std::vector<ColumnSpec>& columns,
                   const LookupPlan& plan);

// Checks that ids which nodes read as numbers of rows name one. Errors: the same.
Status CheckIds(const Graph& graph, const std::vector<ColumnSpec>& columns, const LookupPlan& plan);

}  // namespace dt::worker
