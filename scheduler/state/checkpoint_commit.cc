#include "scheduler/state/checkpoint_commit.h"

#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace dt::scheduler {
namespace {

using Stage = CheckpointRecord::Stage;

void Append(const std::vector<CheckpointFile>& files, Manifest& to) {
  to.files.insert(to.files.end(), files.begin(), files.end());
}

}  // namespace

void CheckpointCommit::Begin(uint64_t order, Step step, bool best) {
  DT_CHECK(idle());
  record_ = {.stage = Stage::kAsked, .order = order, .step = step, .best = best};
}

void CheckpointCommit::Cut(Manifest manifest, const std::map<ProcessId, SaveDone>& answers) {
  DT_CHECK(record_.stage == Stage::kAsked);
  record_.stage = Stage::kWriting;
  record_.manifest = std::move(manifest);
  std::set<ProcessId> writers;
  for (const auto& [id, answer] : answers) {
    Append(answer.files, record_.manifest);
    if (answer.writing) writers.insert(id);
  }
  const auto others = [&](const auto& of) { return !writers.contains(of); };
  std::erase_if(record_.rows, [&](const auto& entry) { return others(entry.first); });
  std::erase_if(record_.lost, others);
  for (const ProcessId id : writers) {
    if (!record_.rows.contains(id) && !record_.lost.contains(id)) record_.writing.insert(id);
  }
}

void CheckpointCommit::OnRowsWritten(ProcessId from, const RowsWrittenMessage& written) {
  if (idle() || written.order != record_.order) return;
  const bool early = record_.stage == Stage::kAsked;
  if (early || record_.writing.erase(from) != 0) record_.rows[from] = written.files;
}

void CheckpointCommit::OnLost(ProcessId server, bool answered) {
  const bool early = record_.stage == Stage::kAsked && answered && !record_.rows.contains(server);
  if (early || record_.writing.erase(server) != 0) record_.lost.insert(server);
}

void CheckpointCommit::OnRemoved(ProcessId server, bool gone) {
  // Before the cut, another may still take its place, and write the same rows.
  if (idle() || (writing() && record_.rows.contains(server))) return;
  record_.abandoned = true;
  if (!gone) return;
  record_.writing.erase(server);
  record_.lost.insert(server);  // It may have answered before the cut.
}

void CheckpointCommit::OnWorkerGone(ProcessId worker) {
  if (record_.writing.erase(worker) != 0) record_.lost.insert(worker);
}

std::optional<CheckpointCommit::Settled> CheckpointCommit::TakeSettled() {
  if (!writing() || !record_.writing.empty()) return std::nullopt;
  CheckpointRecord done = std::exchange(record_, {});
  for (const auto& [id, files] : done.rows) Append(files, done.manifest);
  return Settled{std::move(done.manifest), done.best, done.abandoned || !done.lost.empty()};
}

}  // namespace dt::scheduler
