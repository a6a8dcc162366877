// Reads slices: gathers the samples and finds the distinct keys. Ahead of their use, on a thread of
// its own that keeps a bounded number of finished plans waiting; or when they are asked for.
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

// Plans to be used again, with the memory they hold. Any thread.
using SparePlans = BoundedQueue<std::unique_ptr<LookupPlan>>;

class SliceReader {
 public:
  struct Options {
    const Dataset& data;
    const Plan& plan;
    uint32_t shards = 1;  // Of the job.
    std::vector<uint32_t> wire_tables;
    std::vector<DenseBlockTable> fixed;
    LookupFor purpose = LookupFor::kTrain;
    SparePlans& spare;
    std::function<Status()> interrupted;  // Asked while waiting, on the caller's thread.
    // Names the next slice: fills plan.rows and plan.batch save its columns; false after the last.
    // On the thread that reads.
    std::function<bool(LookupPlan& plan)> next;
    bool ahead = true;             // Else each slice is read by Next.
    Timeline* timeline = nullptr;  // Null: nothing is recorded.
  };
  explicit SliceReader(Options options);
  ~SliceReader();

  // The next slice, in order; nullptr after the last. One thread. Errors: Malformed, a label that
  // the loss cannot take, with its row; what interrupted.
  Result<std::unique_ptr<LookupPlan>> Next();
  // The same, if it is ready: else nothing, and ask again.
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
  BoundedQueue<Item> ready_{3};
  bool at_end_ = false;  // The consumer's.
  std::jthread thread_;  // If it reads ahead. Last: starts when the rest exists.
};

// Labels of binary cross entropy are 0 or 1. Error: Malformed, naming column and row.
Status CheckLabels(const Graph& graph, const std::vector<ColumnSpec>& columns,
                   const LookupPlan& plan);

}  // namespace dt::worker
