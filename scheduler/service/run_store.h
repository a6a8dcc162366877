// What the schedulers of a job keep on disk, so that a scheduler that is started again goes on with
// the run of the one before it: the term, the generation, and the run's record.
//
// One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/fields.h"
#include "common/base/ids.h"
#include "scheduler/service/state_store.h"
#include "scheduler/state/job_record.h"

namespace dt::scheduler {

// What identifies a run.
struct RunIdentity {
  std::string address;           // Of the scheduler, where the members look for it.
  uint64_t job_fingerprint = 0;  // As in JoinMessage.
  uint32_t wire_version = 0;
  double begun = 0;  // WallSeconds.
  DT_FIELDS(address, job_fingerprint, wire_version, begun)
};

struct UnfinishedRun {
  RunIdentity identity;
  JobRecord record;
};

class RunStore {
 public:
  // A new term begins. Errors: DataLoss, Unavailable.
  static Result<std::unique_ptr<RunStore>> Open(std::unique_ptr<StateStore> state);

  Term term() const { return term_; }
  Generation generation() const { return generation_; }

  // The run that the last scheduler left without an end; empty if there is none. Errors: DataLoss.
  Result<std::optional<UnfinishedRun>> Unfinished();
  // Another run begins, with the next generation.
  Status BeginRun(const RunIdentity& identity);
  // The job begins again from a checkpoint: its whole record is another one.
  void BeginAgain() { fixed_kept_ = false; }
  // On return the generation is on disk.
  Status KeepGeneration(Generation generation);
  // On return the record is on disk. Writes only the parts that have changed.
  Status Keep(const JobRecord& record);
  // The run has ended, and its members know it.
  Status EndRun();

 private:
  struct Key {};

 public:
  RunStore(Key, std::unique_ptr<StateStore> state) : state_(std::move(state)) {}  // Use Open.

 private:
  const std::unique_ptr<StateStore> state_;
  Term term_;
  Generation generation_;
  RecordParts kept_;         // As they are on disk.
  bool fixed_kept_ = false;  // Also the parts that stay as they are once the run has begun.
};

}  // namespace dt::scheduler
