// The dense parameters and their optimizer state: one array each, which lives as long as the job.
// Workers at the same position of their teams have the same values, bit for bit. Owned by the train
// thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/cluster/checkpoint_file.h"
#include "common/cluster/taken_parts.h"
#include "common/control/orders.h"
#include "common/graph/graph.h"
#include "common/layout/layout.h"
#include "common/plan/plan.h"

namespace dt::worker {

// Which of the job's teams this worker is in.
struct TeamPlace {
  uint32_t team = 0, teams = 1;
};

class Parameters {
 public:
  // Fills in first values, which depend on the seed and the names only.
  explicit Parameters(const Plan& plan, const TeamPlace& place = {});

  struct Array {
    std::string name;
    ValueIndex value = kNone;
    Shape shape;         // Of what this worker has.
    Shape whole, first;  // The whole array's shape, and where this worker's part begins.
    std::vector<float> values;
    bool optimizer_state = false;  // Read only by updates.
    bool copy = false;     // A worker before this one, in its team or another, has the same part.
    bool of_team = false;  // A worker before this one in its team has the same part.
    bool owned = false;    // State of the rows that this worker updates for its sharers.
  };
  // By part of the plan's graph: the rows of the parameter that this worker updates.
  Range own_rows(size_t part) const { return own_rows_[part]; }

  // In the plan's order. Callers may write the values, and nothing else.
  std::vector<Array>& arrays() { return arrays_; }
  const std::vector<Array>& arrays() const { return arrays_; }
  uint64_t bytes() const;

  // Sums, over elements, of a hash of (name, whole shape, position, value): of what this position
  // of a team has and no position before it, and of what this worker alone has. Added up over
  // positions and workers they are the same, however arrays are divided.
  std::vector<DenseSum> Sums() const;
  std::string Checksum() const;  // Of the first sum, as 32 hex digits.

  // Whether this worker writes a file; else others have all that it has.
  bool saves() const { return place_.team == 0 || !own_rows_.empty(); }
  // Writes this worker's file of dense parameters (dense_file.h), whole or not at all. Errors:
  // Unavailable naming the file. REQUIRES: saves().
  Result<CheckpointFile> Save(const std::string& folder) const;
  // Reads what this worker has, from files of any number of workers. Errors: NotFound; DataLoss
  // naming file and offset, if a file is damaged; Invalid, if they hold other parameters than this
  // model's. Nothing changes on error.
  Status Load(const std::string& folder);
  // Loads what predictions need: everything but optimizer state, which the files may have or lack.
  // Errors: as for Load.
  Status LoadWithoutState(const std::string& folder);
  // Loads these parts of another job's checkpoint in `folder`, and of `parts.file`. Errors: as for
  // Load; those of ArrayReader. After an error some values may have changed.
  Status LoadParts(const std::string& folder, const TakenParts& parts);

 private:
  enum class Wanted { kAll, kWithoutState, kListed };
  Status Load(const std::string& folder, Wanted wanted, std::span<const std::string> listed = {});
  Status LoadFile(const std::string& path, std::span<const std::string> names);

  void SetOwned(const ParameterSpec& spec, const Range& rows, const Graph& graph,
                Array& array) const;
  DenseSum SumOf(bool owned) const;
  uint32_t rank() const { return place_.team * devices_ + position_; }

  std::vector<Array> arrays_;
  std::vector<Range> own_rows_;
  std::vector<bool> copies_;  // By part of the plan's graph: other sharers have these rows, too.
  uint32_t position_ = 0;
  uint32_t devices_ = 1;
  TeamPlace place_;
};

}  // namespace dt::worker
