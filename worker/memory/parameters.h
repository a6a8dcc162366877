// The dense parameters and their state: one array each, living as long as the job. Every worker has
// the same, bit for bit. Owned by the train thread.
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
  // First values, by themselves a function of the seed and the names.
  explicit Parameters(const Plan& plan);

  struct Array {
    std::string name;
    ValueIndex value = kNone;
    Shape shape;
    std::vector<float> values;
    bool optimizer_state = false;  // Read by updates alone.
  };
  // In the plan's order. The values may be written, nothing else.
  std::vector<Array>& arrays() { return arrays_; }
  const std::vector<Array>& arrays() const { return arrays_; }
  uint64_t bytes() const;

  // XXH3-128 over (name, shape, values) in the order of names, as 32 hex digits.
  std::string Checksum() const;

  // Writes "<folder>/dense.bin" whole or not at all. Errors: Unavailable, naming the file.
  Result<CheckpointFile> Save(const std::string& folder) const;
  // Errors: NotFound; DataLoss for a damaged file, with the place; Invalid if it holds other
  // parameters than this model. Nothing changes on error.
  Status Load(const std::string& folder);
  // What predictions need: everything but optimizer state, which the file may hold or lack. Errors:
  // as for Load.
  Status LoadWithoutState(const std::string& folder);

 private:
  std::vector<const Array*> ByName() const;
  std::vector<Array> arrays_;
};

}  // namespace dt::worker
