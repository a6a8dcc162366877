// The result files of child processes, in a folder of this launch alone, because the job may
// already be running under another launch.
#pragma once

#include <string>

#include "cli/process/child_process.h"
#include "common/base/status.h"
#include "common/storage/json_file.h"
#include "common/storage/scratch_dir.h"

namespace dt::cli {

class ChildResults {
 public:
  // Makes the folder in `run_dir`; it goes with this object.
  static Result<ChildResults> Make(const std::string& run_dir);

  // Where the child of this name is to write its result.
  std::string PathOf(const std::string& name) const;
  // The result; null if there is none.
  Json ResultOf(const std::string& name) const;
  // The error in the result of an ended child; OK if it wrote none.
  Status ErrorOf(const ChildProcess& child) const;

 private:
  explicit ChildResults(ScratchDir folder) : folder_(std::move(folder)) {}
  ScratchDir folder_;
};

}  // namespace dt::cli
