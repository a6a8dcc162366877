// The dense parameters and their optimizer state: one array each, which lives as long as the job.
// Every worker has the same values, bit for bit. Owned by the train thread.
#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/checkpoint_file.h"
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
    Shape shape;
    std::vector<float> values;
    bool optimizer_state = false;  // Read only by updates.
  };
  // In the plan's order. Callers may write the values, and nothing else.
  std::vector<Array>& arrays() { return arrays_; }
  const std::vector<Array>& arrays() const { return arrays_; }
  uint64_t bytes() const;

  // XXH3-128 over (name, shape, values) in the order of names, as 32 hex digits.
  std::string Checksum() const;

  // Writes "<folder>/dense.bin" whole or not at all. Errors: Unavailable naming the file.
  Result<CheckpointFile> Save(const std::string& folder) const;
  // Errors: NotFound; DataLoss naming file and offset, if the file is damaged; Invalid, if it holds
  // other parameters than this model's. Nothing changes on error.
  Status Load(const std::string& folder);
  // Loads what predictions need: everything but optimizer state, which the file may have or lack.
  // Errors: as for Load.
  Status LoadWithoutState(const std::string& folder);

 private:
  std::vector<const Array*> ByName() const;
  std::vector<Array> arrays_;
};

}  // namespace dt::worker
