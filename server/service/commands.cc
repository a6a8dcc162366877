#include "server/service/commands.h"

#include <limits>

#include "server/log/log_replay.h"
#include "server/shard/checksum.h"

namespace dt::server {
namespace {

constexpr Duration kReportPatience = seconds(60);

class Begin : public ExecutorCommand {
 public:
  Begin(ShardSetOptions shards, DiskTierOptions disk, std::optional<LogPlace> log)
      : shards_(std::move(shards)), disk_(std::move(disk)), log_(std::move(log)) {}

  std::optional<ExecutorAnswer> Work(TimePoint now, Holdings& held) override {
    const Result<bool> more = Piece(now, held);
    if (more.ok() && *more) return std::nullopt;
    return ExecutorAnswer{.status = more.status(), .first_segment = held.first_segment()};
  }
  Duration patience() const override {
    return replay_->stalled() ? ExecutorCommand::patience() : Duration::zero();
  }
  bool replaces_rows() const override { return true; }

 private:
  // A part of the log at a time: between them the thread does what it always does, so that a push
  // that waits for rows from the disk gets them. False: there is no more.
  Result<bool> Piece(TimePoint now, Holdings& held) {
    if (replay_ == nullptr) DT_TRY_STATUS(Open(held));
    if (replay_ == nullptr) return false;
    DT_TRY(const bool more, replay_->Some(now, *held.shards()));
    if (more) return true;
    DT_TRY(auto log, replay_->Finish(*held.shards()));
    held.KeepLog(std::move(log));
    return false;
  }

  Status Open(Holdings& held) {
    held.Begin(std::move(shards_), std::move(disk_));
    if (!log_.has_value()) return OkStatus();
    ShardSet& shards = *held.shards();
    const Generation generation = shards.generation();
    if (!log_->base.has_value()) {
      DT_TRY(auto log, PushLog::Open({log_->dir, log_->executor, log_->sync}, generation, 1));
      held.KeepLog(std::move(log));
      return OkStatus();
    }
    const LogPlace::Base& base = *log_->base;
    if (!base.folder.empty()) {
      DT_TRY_STATUS(LoadRows(base.folder, base.step, generation, shards, held.tier()));
    } else if (base.step != 0) {
      shards.Reset(base.step, generation);
    }
    DT_TRY(replay_, LogReplay::Open(*log_, shards));
    return OkStatus();
  }

  ShardSetOptions shards_;  // Until Open.
  DiskTierOptions disk_;    // Likewise.
  const std::optional<LogPlace> log_;
  std::unique_ptr<LogReplay> replay_;  // While the log is read back.
};

class Save : public ExecutorCommand {
 public:
  Save(Step step, CheckpointLocation location, Duration patience)
      : step_(step), location_(std::move(location)), patience_(patience) {}

  std::optional<ExecutorAnswer> Work(TimePoint now, Holdings& held) override {
    if (held.shards() == nullptr) return {{Internal("save before the start of the job")}};
    ShardSet& shards = *held.shards();
    // The scheduler orders a save when every worker is past the step: all before is complete.
    shards.Advance(step_);
    if (Status lost = shards.CheckNothingLost(step_); !lost.ok()) return {{std::move(lost)}};
    if (!shards.Reached(step_)) {
      if (!deadline_.has_value()) deadline_ = now + patience_;
      if (now < *deadline_) return std::nullopt;
      return {{Timeout("save at step {}: {}", step_, shards.SlowestText())}};
    }
    held.tier()->BeginSave(SaveTask(shards, step_, location_));
    // What comes now is not in the checkpoint. Where no segment can begin, the cut comes later.
    if (held.log() != nullptr) held.log()->BeginSegment().IgnoreError();
    return {{OkStatus()}};
  }

 private:
  const Step step_;
  const CheckpointLocation location_;
  const Duration patience_;
  std::optional<TimePoint> deadline_;
};

class Load : public ExecutorCommand {
 public:
  Load(std::string folder, Step step, Generation generation)
      : folder_(std::move(folder)), step_(step), generation_(generation) {}

  std::optional<ExecutorAnswer> Work(TimePoint, Holdings& held) override {
    if (held.shards() == nullptr) return {{Internal("load before the start of the job")}};
    held.RenewTier();
    Status status = LoadRows(folder_, step_, generation_, *held.shards(), held.tier());
    if (status.ok() && held.log() != nullptr) status = held.log()->Restart(generation_);
    return ExecutorAnswer{.status = std::move(status), .first_segment = held.first_segment()};
  }
  bool replaces_rows() const override { return true; }

 private:
  const std::string folder_;
  const Step step_;
  const Generation generation_;
};

class Cut : public ExecutorCommand {
 public:
  explicit Cut(Step step) : step_(step) {}

  std::optional<ExecutorAnswer> Work(TimePoint, Holdings& held) override {
    if (held.log() != nullptr) held.log()->Cut(step_);
    return ExecutorAnswer{.status = OkStatus(), .first_segment = held.first_segment()};
  }

 private:
  const Step step_;
};

class Report : public ExecutorCommand {
 public:
  std::optional<ExecutorAnswer> Work(TimePoint now, Holdings& held) override {
    if (held.shards() == nullptr) return {{Internal("report before the start of the job")}};
    ShardSet& shards = *held.shards();
    ExecutorAnswer answer;
    shards.Advance(std::numeric_limits<Step>::max());
    if (!shards.Settled()) {
      if (!deadline_.has_value()) deadline_ = now + kReportPatience;
      if (now < *deadline_) return std::nullopt;
      answer.status = Timeout("report: {}", shards.SlowestText());
    }
    answer.tables = ReportTables(shards.tables(), shards.shards());
    answer.status.Update(held.tier()->VisitRowsBelow(
        [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
          AddRowBelow(table, key, record, answer.tables);
        }));
    return answer;
  }

 private:
  std::optional<TimePoint> deadline_;
};

}  // namespace

std::unique_ptr<ExecutorCommand> BeginCommand(ShardSetOptions shards, DiskTierOptions disk,
                                              std::optional<LogPlace> log) {
  return std::make_unique<Begin>(std::move(shards), std::move(disk), std::move(log));
}

std::unique_ptr<ExecutorCommand> SaveCommand(Step step, CheckpointLocation location,
                                             Duration patience) {
  return std::make_unique<Save>(step, std::move(location), patience);
}

std::unique_ptr<ExecutorCommand> LoadCommand(std::string folder, Step step, Generation generation) {
  return std::make_unique<Load>(std::move(folder), step, generation);
}

std::unique_ptr<ExecutorCommand> CutCommand(Step step) { return std::make_unique<Cut>(step); }

std::unique_ptr<ExecutorCommand> ReportCommand() { return std::make_unique<Report>(); }

}  // namespace dt::server
