// The life of a checkpoint, from the order to save until it is complete or given up.
//
//   idle ─Begin─▶ asked ─all have answered: Cut─▶ writing ─nobody writes any more─▶ settled ─▶ idle
//
// A server answers the order as soon as what it saves is fixed, so that training can go on, and
// says later that its rows are written; a fast one says so before others have answered. If its
// process dies between its answer and its rows, nobody can write them any more, and the checkpoint
// is abandoned once the others are done. If it dies before its answer, its successor gets the order
// again, and nothing is lost. A plain state machine.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/status.h"
#include "common/control/messages.h"
#include "scheduler/checkpoint/manifest.h"

namespace dt::scheduler {

// All that is to be remembered of it.
struct CheckpointRecord {
  enum class Stage : uint8_t { kIdle, kAsked, kWriting };
  Stage stage = Stage::kIdle;
  Step step = 0;
  bool best = false;            // It becomes the best one.
  Manifest manifest;            // Without the rows' files; from the cut on.
  std::set<ProcessId> writing;  // Servers that still write their rows; from the cut on.
  std::set<ProcessId> lost;     // Servers that died between their answer and their rows.
  std::map<ProcessId, std::vector<CheckpointFile>> rows;  // The files of those that are done.
  DT_FIELDS(stage, step, best, manifest, writing, lost, rows)
};

class CheckpointCommit {
 public:
  // The end of a checkpoint.
  struct Settled {
    Manifest manifest;  // With all files, in order of process: how they arrived does not show.
    bool best = false;
    bool abandoned = false;  // It is not complete and never will be.
  };

  // REQUIRES: `record` outlives it.
  explicit CheckpointCommit(CheckpointRecord& record) : record_(record) {}

  bool idle() const { return record_.stage == CheckpointRecord::Stage::kIdle; }
  // Training goes on while rows are written.
  bool writing() const { return record_.stage == CheckpointRecord::Stage::kWriting; }

  // The order to save goes out. REQUIRES: idle.
  void Begin(Step step, bool best);
  // All have answered. `manifest` says what is saved, but for its files.
  void Cut(Manifest manifest, const std::map<ProcessId, SaveDone>& answers);
  // The rows of `from` are written. Internal: it was not asked for them.
  Status OnRowsWritten(ProcessId from, const RowsWrittenMessage& written);
  // The process of a server has died. `answered`: it does not have the order any more.
  void OnLost(ProcessId server, bool answered);
  // Once when nobody writes any more; then it is idle.
  std::optional<Settled> TakeSettled();

 private:
  CheckpointRecord& record_;
};

}  // namespace dt::scheduler
