#include "server/service/commands.h"

#include <limits>
#include <map>

#include "server/log/log_replay.h"
#include "server/shard/checksum.h"

namespace dt::server {
namespace {

constexpr Duration kReportTimeout = seconds(60);

class Begin : public ExecutorCommand {
 public:
  Begin(ShardSetOptions shards, DiskTierOptions disk, std::optional<LogLocation> log)
      : shards_(std::move(shards)), disk_(std::move(disk)), log_(std::move(log)) {}

  std::optional<ExecutorAnswer> Work(TimePoint now, ExecutorState& state) override {
    const Result<bool> more = Piece(now, state);
    if (more.ok() && *more) return std::nullopt;
    return ExecutorAnswer{.status = more.status(), .first_segment = state.first_segment()};
  }
  Duration timeout() const override {
    return replay_->stalled() ? ExecutorCommand::timeout() : Duration::zero();
  }
  bool replaces_rows() const override { return true; }

 private:
  // Replays a part of the log. Between the parts the thread does its usual work, so that a push
  // that waits for rows from the disk gets them. False: there is no more.
  Result<bool> Piece(TimePoint now, ExecutorState& state) {
    if (replay_ == nullptr) DT_TRY_STATUS(Open(now, state));
    if (replay_ == nullptr) return false;
    const auto take_part = [&](CopyRequest& part) { return TakePart(now, part, state); };
    DT_TRY(const bool more, replay_->Some(now, *state.shards(), take_part));
    if (more) return true;
    DT_TRY(auto log, replay_->Finish(*state.shards()));
    state.KeepLog(std::move(log));
    return false;
  }

  Result<bool> TakePart(TimePoint now, CopyRequest& part, ExecutorState& state) {
    // What it had before the copy counts no more.
    if (part.number == 0 && !std::exchange(emptied_, true)) state.Remove(part.shard);
    const bool here = state.shards()->Find(part.shard) != nullptr;
    if (!here && !state.AddAgain(now, part.shard)) return false;
    DT_TRY(const bool taken, ShardCopies::Apply(part, *state.shards(), *state.tier()));
    if (taken) emptied_ = false;
    return taken;
  }

  Status Open(TimePoint now, ExecutorState& state) {
    state.Begin(now, std::move(shards_), std::move(disk_));
    if (!log_.has_value()) return OkStatus();
    ShardSet& shards = *state.shards();
    const Generation generation = shards.generation();
    if (!log_->base.has_value()) {
      DT_TRY(auto log, RecordLog::Open({log_->dir, log_->executor, log_->sync}, generation, 1));
      state.KeepLog(std::move(log));
      return OkStatus();
    }
    const LogLocation::Base& base = *log_->base;
    if (!base.folder.empty()) {
      DT_TRY_STATUS(
          LoadRows({base.folder, base.step, generation, base.taken}, shards, state.tier()));
    } else if (base.step != 0) {
      shards.Reset(base.step, generation);
    }
    DT_TRY(replay_, LogReplay::Open(*log_, shards));
    return OkStatus();
  }

  ShardSetOptions shards_;  // Moved away by Open.
  DiskTierOptions disk_;    // Moved away by Open.
  const std::optional<LogLocation> log_;
  std::unique_ptr<LogReplay> replay_;  // Set while the log is read back.
  bool emptied_ = false;               // For the part that is tried now.
};

class Save : public ExecutorCommand {
 public:
  Save(Step step, CheckpointLocation location, Duration timeout)
      : step_(step), location_(std::move(location)), timeout_(timeout) {}

  std::optional<ExecutorAnswer> Work(TimePoint now, ExecutorState& state) override {
    if (state.shards() == nullptr) return {{Internal("save before the start of the job")}};
    ShardSet& shards = *state.shards();
    // The scheduler orders a save when every worker is past the step, so that all earlier steps are
    // complete.
    shards.Advance(step_);
    if (Status lost = shards.CheckNothingLost(step_); !lost.ok()) return {{std::move(lost)}};
    if (!shards.Reached(step_)) {
      if (!deadline_.has_value()) deadline_ = now + timeout_;
      if (now < *deadline_) return std::nullopt;
      return {{Timeout("save at step {}: {}", step_, shards.SlowestText())}};
    }
    state.tier()->BeginSave(SaveTask(shards, step_, location_));
    // Records from now on are not in the checkpoint. If no segment can begin, the log is cut later.
    if (state.log() != nullptr) {
      state.log()->BeginSegmentAtCut(step_, state.SegmentOfCopies()).IgnoreError();
    }
    return {{OkStatus()}};
  }

 private:
  const Step step_;
  const CheckpointLocation location_;
  const Duration timeout_;
  std::optional<TimePoint> deadline_;
};

class Load : public ExecutorCommand {
 public:
  explicit Load(RowsToLoad rows) : rows_(std::move(rows)) {}

  std::optional<ExecutorAnswer> Work(TimePoint now, ExecutorState& state) override {
    if (state.shards() == nullptr) return {{Internal("load before the start of the job")}};
    state.RenewTier();
    Status status = LoadRows(rows_, *state.shards(), state.tier());
    state.BeginAnew(now);
    if (status.ok() && state.log() != nullptr) status = state.log()->Restart(rows_.generation);
    return ExecutorAnswer{.status = std::move(status), .first_segment = state.first_segment()};
  }
  bool replaces_rows() const override { return true; }

 private:
  const RowsToLoad rows_;
};

class Cut : public ExecutorCommand {
 public:
  explicit Cut(Step step) : step_(step) {}

  std::optional<ExecutorAnswer> Work(TimePoint, ExecutorState& state) override {
    if (state.log() != nullptr) state.log()->Cut(step_);
    return ExecutorAnswer{.status = OkStatus(), .first_segment = state.first_segment()};
  }

 private:
  const Step step_;
};

class NewView : public ExecutorCommand {
 public:
  NewView(ViewNumber number, std::vector<ProcessId> workers)
      : number_(number), workers_(std::move(workers)) {}

  std::optional<ExecutorAnswer> Work(TimePoint, ExecutorState& state) override {
    if (state.shards() == nullptr) return {{Internal("a view before the start of the job")}};
    state.shards()->SetView(number_, workers_);
    return ExecutorAnswer{.status = OkStatus(), .complete = state.shards()->KnownComplete()};
  }

 private:
  const ViewNumber number_;
  const std::vector<ProcessId> workers_;
};

CopySum SumOf(ShardId shard, std::span<const TableReport> tables) {
  CopySum sum{.shard = shard};
  for (const TableReport& table : tables) {
    sum.checksum_low += table.checksum_low;
    sum.checksum_high += table.checksum_high;
  }
  return sum;
}

class Report : public ExecutorCommand {
 public:
  std::optional<ExecutorAnswer> Work(TimePoint now, ExecutorState& state) override {
    if (state.shards() == nullptr) return {{Internal("report before the start of the job")}};
    ShardSet& shards = *state.shards();
    ExecutorAnswer answer;
    shards.Advance(std::numeric_limits<Step>::max());
    if (!shards.Settled()) {
      if (!deadline_.has_value()) deadline_ = now + kReportTimeout;
      if (now < *deadline_) return std::nullopt;
      answer.status = Timeout("report: {}", shards.SlowestText());
    }
    std::map<ShardId, std::vector<TableReport>> reports;
    for (const Shard& shard : shards.shards()) {
      reports[shard.id()] = ReportTables(shards.tables(), {&shard, 1});
    }
    answer.status.Update(state.tier()->VisitRowsBelow(
        [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
          AddRowBelow(table, key, record, reports.at(table.shard()));
        }));
    answer.map = shards.view().map.version;
    answer.tables = ReportTables(shards.tables(), {});
    for (const auto& [id, report] : reports) {
      if (shards.Find(id)->place().tail) AddReports(answer.tables, report);
      // What is still being copied to here is not all of the shard.
      const bool has_others = shards.view().map.chains[id.value()].members.size() > 1;
      if (has_others && shards.IsMember(id)) {
        answer.copies.push_back(SumOf(id, report));
      }
    }
    return answer;
  }

 private:
  std::optional<TimePoint> deadline_;
};

}  // namespace

std::unique_ptr<ExecutorCommand> BeginCommand(ShardSetOptions shards, DiskTierOptions disk,
                                              std::optional<LogLocation> log) {
  return std::make_unique<Begin>(std::move(shards), std::move(disk), std::move(log));
}

std::unique_ptr<ExecutorCommand> SaveCommand(Step step, CheckpointLocation location,
                                             Duration timeout) {
  return std::make_unique<Save>(step, std::move(location), timeout);
}

std::unique_ptr<ExecutorCommand> LoadCommand(RowsToLoad rows) {
  return std::make_unique<Load>(std::move(rows));
}

std::unique_ptr<ExecutorCommand> CutCommand(Step step) { return std::make_unique<Cut>(step); }

std::unique_ptr<ExecutorCommand> NewViewCommand(ViewNumber number, std::vector<ProcessId> workers) {
  return std::make_unique<NewView>(number, std::move(workers));
}

std::unique_ptr<ExecutorCommand> ReportCommand() { return std::make_unique<Report>(); }

}  // namespace dt::server
