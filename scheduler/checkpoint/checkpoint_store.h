// A job's checkpoints on disk:
//
//   <dir>/step-000000001000/manifest.json   written last; then the folder is renamed into place
//   <dir>/step-000000001000/…               what servers and rank 0 wrote
//   <dir>/.writing-000000002000/            not complete; swept away at the next start
//   <dir>/.removing-step-000000000500/      on its way out; as well
//   <dir>/best -> step-000000001000         exempt from `keep`
//
// One thread. Errors of the disk are Unavailable and say what, where and why.
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
  Status status;  // Whether its manifest is whole; the files are not read.

  // False if the folder has no manifest, which is written last.
  bool complete() const { return status.code() != StatusCode::kNotFound; }
};
// Ascending by step. Empty where there are none.
std::vector<CheckpointInfo> ListCheckpoints(const std::string& dir);
Result<Manifest> ReadManifest(const std::string& folder);
// Reads every file. DataLoss names the damaged or missing one; its hint is the checkpoint before
// it.
Status VerifyCheckpoint(const std::string& folder);
// As VerifyCheckpoint, but without reading the rows, which may be terabytes: the servers, which
// read them all, check each block.
Status VerifyButRows(const std::string& folder);
// The folder of the newest complete checkpoint, if there is one. Folders without a manifest are
// skipped with a warning. DataLoss, as from VerifyButRows, if it is damaged.
Result<std::optional<std::string>> NewestCheckpoint(const std::string& dir);

struct BestCheckpoint {
  Step step = 0;
  std::string folder;
};
// The best one that a job which goes on from `folder` has so far: that one, or one beside it;
// nothing if none is kept. NotFound if it is not there: the job could not return to it at its end.
Result<std::optional<BestCheckpoint>> BestOfResumed(const std::string& folder,
                                                    const Manifest& manifest);

class CheckpointStore {
 public:
  struct Options {
    std::string dir;
    uint32_t keep = 3;
    // The step that the job goes on from. Of the other checkpoints those after it, and without it
    // all, are another run's: they go when the job's first own one is complete.
    std::optional<Step> resumed;
    std::optional<BestCheckpoint> best;  // The resumed job's; it may lie elsewhere.
  };
  static Result<CheckpointStore> Open(const Options& options);

  // Where the checkpoint of `step` is written; made, empty, absolute.
  Result<std::string> Begin(Step step);
  // Completes what Begin began: checks that every file is there, writes the manifest, renames (in
  // exchange for one of the same step, if there is one), links `best`, and removes what is more
  // than `keep`. Returns the folder.
  Result<std::string> Commit(const Manifest& manifest, bool best);
  // Where the complete checkpoint of `step` lies. NotFound.
  Result<std::string> Find(Step step) const;
  const std::vector<std::string>& complete() const { return own_; }

 private:
  explicit CheckpointStore(const Options& options) : options_(options), best_(options.best) {}
  Status LinkBest() const;
  void Prune();

  Options options_;
  std::optional<BestCheckpoint> best_;
  std::vector<std::string> older_;  // An earlier run's; they go with the first Commit.
  std::vector<std::string> own_;    // Complete ones that count for `keep`, oldest first.
};

}  // namespace dt::scheduler
