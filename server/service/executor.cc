#include "server/service/executor.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "server/shard/checksum.h"

namespace dt::server {
namespace {

constexpr Duration kPatience = milliseconds(100);  // A stop or a command wakes earlier.
constexpr Duration kSizesEvery = milliseconds(500);
constexpr Duration kSavePatience = milliseconds(10);  // While a save waits for its step.
constexpr Duration kReportPatience = seconds(60);
constexpr size_t kTurnMessages = 64;     // That share a write to the log,
constexpr size_t kTurnBytes = 64 << 20;  // likewise.

}  // namespace

Executor::Executor(ExecutorOptions options, std::unique_ptr<ServerSocket> socket)
    : options_(std::move(options)),
      endpoint_(socket->endpoint()),
      socket_(std::move(socket)),
      frontend_(options_.tables, options_.pull_patience),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Executor::~Executor() {
  thread_.request_stop();
  socket_->Wake();
}

void Executor::Post(ExecutorCommand command) {
  DT_CHECK(commands_.TryPush(command));
  socket_->Wake();
}

void Executor::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    PassTime();
    TakeCommands();
    WorkOnTier();
    TrySave();
    TryReport();
    Replay();
    const bool alive = TakeMessages();
    frontend_.OnTick(SystemClock().Now(), outgoing_);
    CommitLog();
    SendAll();
    NoteProgress();
    if (!alive) return;
  }
}

void Executor::WorkOnTier() {
  if (tier_ == nullptr) return;
  const uint64_t before = tier_->progress();
  tier_->Work();
  if (tier_->progress() != before) shards_->Resume();
}

// For rows that expire by time, and for those who watch.
void Executor::PassTime() {
  const TimePoint now = SystemClock().Now();
  if (shards_ != nullptr) shards_->PassTime(now - time_passed_until_);
  time_passed_until_ = now;
  if (shards_ == nullptr || now < next_sizes_) return;
  next_sizes_ = now + kSizesEvery;
  std::vector<TableReport> sizes = SizesOf(shards_->tables(), shards_->shards());
  static_cast<void>(sizes_.TryPush(sizes));  // The server takes them when it can.
}

void Executor::TakeCommands() {
  while (std::optional<ExecutorCommand> command = commands_.Pop(Duration::zero())) {
    if (auto* const save = std::get_if<SaveCommand>(&*command)) {
      save_ = {*save, SystemClock().Now() + save->patience};
    } else if (auto* const begin = std::get_if<BeginCommand>(&*command)) {
      CarryOut(*begin);
    } else if (auto* const load = std::get_if<LoadCommand>(&*command)) {
      Answer(CarryOut(*load));
    } else if (const auto* const cut = std::get_if<CutCommand>(&*command)) {
      Answer(CarryOut(*cut));
    } else {
      report_by_ = SystemClock().Now() + kReportPatience;
    }
  }
}

void Executor::CarryOut(BeginCommand& command) {
  frontend_.Serve(nullptr, nullptr, outgoing_);
  log_.reset();
  tier_.reset();
  shards_ = std::make_unique<ShardSet>(std::move(command.shards));
  disk_options_ = std::move(command.disk);
  disk_options_.wake = [this] { socket_->Wake(); };
  MakeTier();
  const Generation generation = shards_->stamp().generation;
  Status status;
  if (command.log.has_value() && command.log->base.has_value()) {
    status = BeginReplay(*command.log, generation);
    if (status.ok()) return;  // Answered at its end.
  } else if (command.log.has_value()) {
    const LogPlace& place = *command.log;
    auto log = PushLog::Open({place.dir, place.executor, place.sync}, generation, 1);
    status = log.status();
    if (log.ok()) log_ = *std::move(log);
  }
  if (status.ok()) frontend_.Serve(shards_.get(), log_.get(), outgoing_);
  Answer({.status = std::move(status), .first_segment = FirstSegment()});
}

void Executor::MakeTier() {
  tier_.reset();  // Its folder is the next one's.
  tier_ = std::make_unique<DiskTier>(disk_options_, *shards_);
  shards_->Attach(tier_.get());
}

Status Executor::BeginReplay(const LogPlace& place, Generation generation) {
  const LogPlace::Base& base = *place.base;
  if (!base.folder.empty()) {
    DT_TRY_STATUS(LoadRows(base.folder, base.step, generation, *shards_, tier_.get()));
  } else if (base.step != 0) {
    shards_->Reset(base.step, generation);
  }
  DT_TRY(PushLogReader reader, PushLogReader::Open({place.dir, place.executor, generation,
                                                    base.first_segment, place.sync}));
  replay_ = std::make_unique<LogReplay>(
      std::move(reader), PushLog::Options{place.dir, place.executor, place.sync}, options_.tables);
  return OkStatus();
}

// A part of the log at a time: between them the thread does what it always does, so that a push
// that waits for rows from the disk gets them.
void Executor::Replay() {
  if (replay_ == nullptr) return;
  Result<bool> more = replay_->Some(SystemClock().Now(), *shards_);
  if (more.ok() && *more) return;
  Status status = more.status();
  if (status.ok()) {
    auto log = replay_->Finish(shards_->stamp().generation);
    status = log.status();
    if (log.ok()) log_ = *std::move(log);
  }
  replay_.reset();
  // With half of the pushes it serves nobody.
  if (status.ok()) frontend_.Serve(shards_.get(), log_.get(), outgoing_);
  Answer({.status = std::move(status), .first_segment = FirstSegment()});
}

uint64_t Executor::FirstSegment() const { return log_ == nullptr ? 0 : log_->first_segment(); }

ExecutorAnswer Executor::CarryOut(LoadCommand& command) {
  if (shards_ == nullptr) return {Internal("load before the start of the job")};
  frontend_.Serve(nullptr, nullptr, outgoing_);
  MakeTier();
  Status status = LoadRows(command.folder, command.step, command.generation, *shards_, tier_.get());
  if (status.ok() && log_ != nullptr) status = log_->Restart(command.generation);
  // With half of the rows it serves nobody.
  if (status.ok()) frontend_.Serve(shards_.get(), log_.get(), outgoing_);
  return {.status = std::move(status), .first_segment = FirstSegment()};
}

ExecutorAnswer Executor::CarryOut(const CutCommand& command) {
  if (log_ != nullptr) log_->Cut(command.step);
  return {.status = OkStatus(), .first_segment = FirstSegment()};
}

void Executor::TryReport() {
  if (!report_by_.has_value()) return;
  ExecutorAnswer answer;
  if (shards_ == nullptr) {
    answer.status = Internal("report before the start of the job");
  } else {
    shards_->Advance(std::numeric_limits<Step>::max());
    if (!shards_->Settled()) {
      if (SystemClock().Now() < *report_by_) return;
      answer.status = Timeout("report: {}", shards_->SlowestText());
    }
    answer.tables = ReportTables(shards_->tables(), shards_->shards());
    answer.status.Update(tier_->VisitRowsBelow(
        [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
          AddRowBelow(table, key, record, answer.tables);
        }));
  }
  report_by_.reset();
  Answer(std::move(answer));
}

void Executor::TrySave() {
  TakeSavedRows();
  if (!save_.has_value()) return;
  std::optional<Status> status = Save(*save_);
  if (!status.has_value()) return;
  save_.reset();
  Answer({*std::move(status)});
}

// Nothing while it waits for the step.
std::optional<Status> Executor::Save(const PendingSave& save) {
  const SaveCommand& command = save.command;
  if (shards_ == nullptr) return Internal("save before the start of the job");
  // The scheduler orders a save when every worker is past the step: all before is complete.
  shards_->Advance(command.step);
  if (shards_->Reached(command.step)) {
    tier_->BeginSave(SaveTask(*shards_, command.step, command.place));
    // What comes now is not in the checkpoint. Where no segment can begin, the cut comes later.
    if (log_ != nullptr) log_->BeginSegment().IgnoreError();
    return OkStatus();
  }
  if (SystemClock().Now() < save.deadline) return std::nullopt;
  return Timeout("save at step {}: {}", command.step, shards_->SlowestText());
}

void Executor::TakeSavedRows() {
  if (tier_ == nullptr) return;
  const std::unique_ptr<CheckpointTask> task = tier_->TakeSaved();
  if (task == nullptr) return;
  ExecutorAnswer saved{Prefixed(task->status, "saving rows"), std::move(task->files)};
  DT_CHECK(saved_.TryPush(saved));
}

void Executor::Answer(ExecutorAnswer answer) { DT_CHECK(answers_.TryPush(answer)); }

bool Executor::TakeMessages() {
  Duration patience = Patience();
  for (size_t i = 0, bytes = 0; i < kTurnMessages && bytes < kTurnBytes; ++i) {
    Result<PeerMessage> message = socket_->Receive(patience);
    const StatusCode code = message.status().code();
    if (code == StatusCode::kDeadlineExceeded || code == StatusCode::kCancelled) return true;
    if (!message.ok()) {
      Fail(WithWhere(message.status(), endpoint_));
      return false;
    }
    for (const Frame& frame : message->frames) bytes += frame.size();
    frontend_.OnMessage(SystemClock().Now(), *std::move(message), outgoing_);
    if (log_ == nullptr) return true;
    patience = Duration::zero();
  }
  return true;
}

void Executor::CommitLog() {
  if (log_ == nullptr) return;
  const Status written = log_->Commit();
  frontend_.OnCommit(written, outgoing_);
  log_bytes_.store(log_->bytes(), std::memory_order_relaxed);
  if (written.ok()) {
    if (log_failing_since_.has_value()) LogInfo("server.log_goes_on", {{"bytes", log_->bytes()}});
    log_failing_since_.reset();
    return;
  }
  const TimePoint now = SystemClock().Now();
  if (!log_failing_since_.has_value()) {
    log_failing_since_ = now;
    LogWarn("server.log_not_written", {{"problem", ToText(written)}});
  }
  if (log_->broken() || now - *log_failing_since_ > options_.log_patience) Fail(written);
}

Duration Executor::Patience() const {
  if (replay_ != nullptr && !replay_->stalled()) return Duration::zero();
  if (tier_ != nullptr && tier_->busy()) return Duration::zero();
  if (save_.has_value() || report_by_.has_value() || replay_ != nullptr) return kSavePatience;
  if (frontend_.NextDeadline() == TimePoint::max()) return kPatience;
  const Duration left = frontend_.NextDeadline() - SystemClock().Now();
  return std::clamp<Duration>(left, Duration::zero(), kPatience);
}

void Executor::SendAll() {
  for (PeerMessage& message : outgoing_) {
    const Status sent = socket_->Send(message.peer, std::move(message.frames));
    if (!sent.ok()) LogWarn("server.answer_lost", {{"problem", MessageOf(sent)}});
  }
  outgoing_.clear();
}

// The step has been applied when it shows here; what it cost in memory is known only now.
void Executor::NoteProgress() {
  if (tier_ != nullptr && !tier_->failure().ok()) Fail(tier_->failure());
  if (shards_ == nullptr || (shards_->clock() == clock() && own_memory_bytes_ != 0)) return;
  clock_.store(shards_->clock(), std::memory_order_relaxed);
  const uint64_t bytes = shards_->bytes() + tier_->bytes();
  const uint64_t total =
      options_.memory_bytes->fetch_add(bytes - own_memory_bytes_) + bytes - own_memory_bytes_;
  own_memory_bytes_ = bytes;
  // Rows of the steps under way stay, whatever their size.
  if (total <= options_.memory_bytes_max / 20 * 21 + options_.memory_slack) return;
  Fail(WithHint(Unavailable("the rows that must stay in memory need {}; this server may use {}",
                            BytesText(total), BytesText(options_.memory_bytes_max)),
                "raise cluster.server.memory, start more servers, or make batches smaller"));
}

void Executor::Fail(Status status) {
  if (failed_) return;
  failed_ = true;
  static_cast<void>(failures_.TryPush(status));  // One is enough to end the server.
}

}  // namespace dt::server
