// The life of a checkpoint, from the order to save until it is complete or given up.
//
//   idle ─Begin─▶ asked ─all have answered: Cut─▶ writing ─no server writes any more─▶ idle
//
// A server answers the order to save as soon as the content of its checkpoint is fixed, so that
// training can go on. It reports later that its rows are written; a fast server may report this
// before others have answered. If a server's process dies between its answer and that report, its
// rows are lost, and the checkpoint is abandoned once the other servers are done. If it dies before
// its answer, its successor gets the order again and nothing is lost. Workers write dense
// parameters in the same way; when one is lost before all have answered, the order is given anew.
// Reports that come twice, or of an earlier checkpoint, change nothing. A plain state machine.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/status.h"
#include "common/control/messages.h"
#include "scheduler/checkpoint/manifest.h"

namespace dt::scheduler {

// The state of the checkpoint that is being made; a part of the job's record.
struct CheckpointRecord {
  enum class Stage : uint8_t { kIdle, kAsked, kWriting };
  Stage stage = Stage::kIdle;
  uint64_t order = 0;  // The order to save.
  Step step = 0;
  bool best = false;            // Whether it becomes the best checkpoint.
  Manifest manifest;            // Set at the cut; the files of rows are still missing.
  std::set<ProcessId> writing;  // Processes that still write; set at the cut.
  // Processes that died, or went, after their answer and before their files were written.
  std::set<ProcessId> lost;
  bool abandoned = false;  // A server was removed too early; see OnRemoved.
  std::map<ProcessId, std::vector<CheckpointFile>> rows;  // The files of those that are done.
  DT_FIELDS(stage, order, step, best, manifest, writing, lost, abandoned, rows)
};

class CheckpointCommit {
 public:
  // The end of a checkpoint.
  struct Settled {
    Manifest manifest;  // Lists all files, in order of process id, however they arrived.
    bool best = false;
    bool abandoned = false;  // The checkpoint is not complete and never will be.
  };

  // REQUIRES: `record` outlives this object.
  explicit CheckpointCommit(CheckpointRecord& record) : record_(record) {}

  bool idle() const { return record_.stage == CheckpointRecord::Stage::kIdle; }
  // Whether files are being written; training goes on meanwhile.
  bool writing() const { return record_.stage == CheckpointRecord::Stage::kWriting; }

  // Call when the order to save is sent. REQUIRES: idle.
  void Begin(uint64_t order, Step step, bool best);
  // Call when all have answered. `manifest` describes the checkpoint and has no files yet.
  void Cut(Manifest manifest, const std::map<ProcessId, SaveDone>& answers);
  // The files of `from` are written.
  void OnRowsWritten(ProcessId from, const RowsWrittenMessage& written);
  // The process of a server has died. `answered`: it had already answered the order to save.
  void OnLost(ProcessId server, bool answered);
  // The job goes on without this server, or, unless it is `gone`, without it for some shards.
  // Unless all have answered and its rows are written, the checkpoint is abandoned: nobody else
  // writes them, or another that has yet to answer writes them once more. One that is not gone may
  // still write, and is waited for.
  void OnRemoved(ProcessId server, bool gone);
  // The job goes on without this worker.
  void OnWorkerGone(ProcessId worker);
  bool writes(ProcessId process) const { return record_.writing.contains(process); }
  // Returns the result once, when nobody writes any more; the state is idle afterwards.
  std::optional<Settled> TakeSettled();

 private:
  CheckpointRecord& record_;
};

}  // namespace dt::scheduler
