// The dense parameters and their optimizer state: one array each, which lives as long as the job.
// Workers at the same position of their teams have the same values, bit for bit. Owned by the train
// thread.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/checkpoint_file.h"
#include "common/control/orders.h"
#include "common/graph/graph.h"
#include "common/plan/plan.h"

namespace dt::worker {

class Parameters {
 public:
  // Fills in first values, which depend on the seed and the names only.
  explicit Parameters(const Plan& plan);

  struct Array {
    std::string name;
    ValueIndex value = kNone;
    Shape shape;         // Of what this worker has.
    Shape whole, first;  // The whole array's shape, and where this worker's part begins.
    std::vector<float> values;
    bool optimizer_state = false;  // Read only by updates.
    bool copy = false;             // A worker before this one in the team has the same part.
  };
  // In the plan's order. Callers may write the values, and nothing else.
  std::vector<Array>& arrays() { return arrays_; }
  const std::vector<Array>& arrays() const { return arrays_; }
  uint64_t bytes() const;

  // The sum over all elements, but those of copies, of a hash of (name, whole shape, position,
  // value): the same for the whole team, however it divides the arrays.
  DenseSum Sum() const;
  std::string Checksum() const;  // The same as 32 hex digits.

  // Writes this worker's file of dense parameters (dense_file.h), whole or not at all. Errors:
  // Unavailable naming the file.
  Result<CheckpointFile> Save(const std::string& folder) const;
  // Reads what this worker has, from files of any number of workers. Errors: NotFound; DataLoss
  // naming file and offset, if a file is damaged; Invalid, if they hold other parameters than this
  // model's. Nothing changes on error.
  Status Load(const std::string& folder);
  // Loads what predictions need: everything but optimizer state, which the files may have or lack.
  // Errors: as for Load.
  Status LoadWithoutState(const std::string& folder);

 private:
  Status Load(const std::string& folder, bool with_state);

  std::vector<Array> arrays_;
  uint32_t position_ = 0;
  uint32_t devices_ = 1;
};

}  // namespace dt::worker
