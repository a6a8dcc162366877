// A table on this worker: which keys have a row, and where it is. The rows, values and then
// optimizer state, are in one piece of a device's memory, where the plan's nodes read and update
// them; everything else is here, in host memory.
//
//   a key     row number, step of the last update          by number, the order of first updates
//   a row     dim values | state                           in RowMemory
//
// As on servers, a key without a row reads as its initial value, and only the first update makes
// the row. If several slices or workers make up a step, all workers update with all keys of the
// step, so that each has the same rows under the same numbers. Owned by the train thread; no method
// may be called while nodes run.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/cluster/table_report.h"
#include "common/config/model_config.h"
#include "common/rows/initial_rows.h"
#include "worker/lookup/lookup_planner.h"
#include "worker/memory/table_view.h"
#include "worker/tables/row_memory.h"

namespace dt::worker {

class WorkerTable {
 public:
  struct Options {
    const TableConfig& table;
    uint64_t seed = 0;
    uint64_t expected_rows = 0;          // Memory for this many rows is taken at once.
    bool updated = true;                 // A slice is a whole step, so its training makes rows.
    Accelerator* accelerator = nullptr;  // Where the rows are; null: in host memory.
  };
  // Errors: Unavailable, if the memory is too small for `expected_rows`.
  static Result<std::unique_ptr<WorkerTable>> Create(const Options& options);
  // Not ready yet: use Create.
  explicit WorkerTable(const Options& options);

  // Finds the rows of a slice's keys, which are distinct, for training at `step` or for evaluation;
  // view() says where they are until the next call of any method. Errors: Unavailable, if the
  // memory is too small.
  Status Bind(std::span<const Key> keys, Step step, LookupFor purpose);
  // Like Bind, for all keys of a step with several slices, which the step updates.
  Status BindStep(std::span<const Key> keys, Step step);
  // The update of the step bound last begins: it makes rows for new keys. A step that is given up
  // before leaves the table as it was.
  void BeginUpdate();
  TableView view() const;

  const TableConfig& config() const { return table_; }
  uint32_t rows() const { return static_cast<uint32_t>(keys_.size()); }
  uint64_t bytes() const { return rows() * (sizeof(Key) + width_ * sizeof(float) + sizeof(Step)); }
  std::span<const Key> keys() const { return keys_; }  // By number.
  uint32_t state() const { return width_ - table_.dim; }
  size_t record_bytes() const { return width_ * sizeof(float) + sizeof(Step); }

  // Visits these rows as records (common/rows/row_record.h). Stops at the first error.
  using Visit = std::function<Status(Key key, std::span<const std::byte> record)>;
  Status VisitRows(std::span<const uint32_t> numbers, const Visit& visit);
  // Fills in the sizes; allocates nothing if `sizes` had the name before.
  void PutSizes(TableReport& sizes) const;
  // The sizes and the checksum.
  Result<TableReport> Report();

  // Forgets all rows.
  void Clear();
  // Adds a saved row, which is complete after FinishRestore. Errors: DataLoss, if it has a wrong
  // size or its key is there already; Unavailable as for Bind.
  Status Restore(Key key, std::span<const std::byte> record);
  Status FinishRestore();

 private:
  Status Find(std::span<const Key> keys, bool zeros);
  void MakeRows();
  void FindRows(std::span<const Key> keys);
  void FindStepsSinceUpdate(Step step);
  void FillFresh(bool zeros);
  Status MakeRoom(uint32_t needed, uint32_t used);

  const TableConfig table_;
  const uint32_t width_;
  const bool updated_;
  const bool on_accelerator_;
  const InitialRows initial_;
  std::unique_ptr<RowMemory> memory_;
  absl::flat_hash_map<Key, uint32_t> numbers_of_;
  std::vector<Key> keys_;          // By number.
  std::vector<Step> last_update_;  // By number.
  uint64_t touched_ = 0;           // Total of keys looked up by slices.

  // For the current slice or step.
  std::vector<uint32_t> numbers_, steps_since_update_;
  Step step_ = 0;
  bool bound_ = false;      // By BindStep, and the update has not begun.
  std::vector<Key> fresh_;  // Keys without a row so far; numbered after those that have one.
  // Rows of fresh_; during Restore, the last rows, not written yet.
  std::vector<float> fresh_rows_;
};

}  // namespace dt::worker
