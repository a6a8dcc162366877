// A job's checkpoints on disk:
//
//   <dir>/step-000000001000/manifest.json   written last; then the folder is renamed into place
//   <dir>/step-000000001000/…               what servers and rank 0 wrote
//   <dir>/.writing-000000002000/            not complete; removed at the next start of the job
//   <dir>/.removing-step-000000000500/      being removed; removed at the next start at the latest
//   <dir>/best -> step-000000001000         exempt from `keep`
//
// One thread. Disk errors are Unavailable and say what failed, where and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/checkpoint/manifest.h"

namespace dt::scheduler {

struct CheckpointInfo {
  std::string folder;
  Step step = 0;
  bool best = false;
  uint64_t bytes = 0;
  std::string written;
  Status status;  // Whether the manifest is valid; the other files are not read.

  // False if the folder has no manifest, which is written last.
  bool complete() const { return status.code() != StatusCode::kNotFound; }
};
// Sorted by step; empty if there are none.
std::vector<CheckpointInfo> ListCheckpoints(const std::string& dir);
Result<Manifest> ReadManifest(const std::string& folder);
// Reads every file. Errors: DataLoss, naming the damaged or missing file; the hint names the
// checkpoint before it.
Status VerifyCheckpoint(const std::string& folder);
// Verifies everything except the content of the rows, which may be terabytes: servers read all rows
// when they load, and check each block.
Status VerifyButRows(const std::string& folder);
// The folder of the newest complete checkpoint, if there is one. Folders without a manifest are
// skipped with a warning. Errors: those of VerifyButRows.
Result<std::optional<std::string>> NewestCheckpoint(const std::string& dir);

struct BestCheckpoint {
  Step step = 0;
  std::string folder;
};
// The best checkpoint so far of a job that resumes from `folder`: that one, or one beside it; empty
// if the job keeps none. Errors: NotFound, if it is missing, because the job could not return to it
// at its end.
Result<std::optional<BestCheckpoint>> BestOfResumed(const std::string& folder,
                                                    const Manifest& manifest);

class CheckpointStore {
 public:
  struct Options {
    std::string dir;
    uint32_t keep = 3;
    // The step that the job resumes from. Checkpoints after that step, or all if it is not set,
    // belong to another run; they are removed when this run completes its first checkpoint.
    std::optional<Step> resumed;
    // The resumed job's best checkpoint; may be in another directory.
    std::optional<BestCheckpoint> best;
    // Another scheduler of this run was here: what is being written stays, and `best` is what the
    // link says.
    bool continues = false;
  };
  static Result<CheckpointStore> Open(const Options& options);

  // Makes an empty folder for writing the checkpoint of `step`; returns its absolute path.
  Result<std::string> Begin(Step step);
  // Completes the checkpoint that Begin started: checks that every file is there, writes the
  // manifest, renames the folder into place (replacing one of the same step), updates the link
  // `best`, and removes checkpoints in excess of `keep`. Returns the folder. After a scheduler that
  // died meanwhile, or before it could note the end, another does it again.
  Result<std::string> Commit(const Manifest& manifest, bool best);
  // The folder of the complete checkpoint of `step`. Errors: NotFound.
  Result<std::string> Find(Step step) const;

 private:
  explicit CheckpointStore(const Options& options) : options_(options), best_(options.best) {}
  static Status Complete(const Manifest& manifest, const std::string& writing,
                         const std::string& folder);
  Status LinkBest() const;
  void Prune();

  Options options_;
  std::optional<BestCheckpoint> best_;
  std::vector<std::string> older_;  // Checkpoints of an earlier run, removed by the first Commit.
  std::vector<std::string> own_;    // Complete checkpoints that count for `keep`, oldest first.
};

}  // namespace dt::scheduler
