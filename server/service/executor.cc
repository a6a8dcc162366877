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
    const bool alive = TakeMessage();
    frontend_.OnTick(SystemClock().Now(), outgoing_);
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
      Answer(CarryOut(*begin));
    } else if (auto* const load = std::get_if<LoadCommand>(&*command)) {
      Answer(CarryOut(*load));
    } else {
      report_by_ = SystemClock().Now() + kReportPatience;
    }
  }
}

ExecutorAnswer Executor::CarryOut(BeginCommand& command) {
  frontend_.Serve(nullptr, outgoing_);
  tier_.reset();
  shards_ = std::make_unique<ShardSet>(std::move(command.shards));
  disk_options_ = std::move(command.disk);
  disk_options_.wake = [this] { socket_->Wake(); };
  MakeTier();
  frontend_.Serve(shards_.get(), outgoing_);
  return {};
}

void Executor::MakeTier() {
  tier_.reset();  // Its folder is the next one's.
  tier_ = std::make_unique<DiskTier>(disk_options_, *shards_);
  shards_->Attach(tier_.get());
}

ExecutorAnswer Executor::CarryOut(LoadCommand& command) {
  if (shards_ == nullptr) return {Internal("load before the start of the job"), {}, {}};
  frontend_.Serve(nullptr, outgoing_);
  MakeTier();
  Status status = LoadRows(command.folder, command.step, command.generation, *shards_, tier_.get());
  // With half of the rows it serves nobody.
  if (status.ok()) frontend_.Serve(shards_.get(), outgoing_);
  return {std::move(status), {}, {}};
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
  Answer({*std::move(status), {}, {}});
}

// Nothing while it waits for the step.
std::optional<Status> Executor::Save(const PendingSave& save) {
  const SaveCommand& command = save.command;
  if (shards_ == nullptr) return Internal("save before the start of the job");
  // The scheduler orders a save when every worker is past the step: all before is complete.
  shards_->Advance(command.step);
  if (shards_->Reached(command.step)) {
    tier_->BeginSave(SaveTask(*shards_, command.step, command.place));
    return OkStatus();
  }
  if (SystemClock().Now() < save.deadline) return std::nullopt;
  return Timeout("save at step {}: {}", command.step, shards_->SlowestText());
}

void Executor::TakeSavedRows() {
  if (tier_ == nullptr) return;
  const std::unique_ptr<CheckpointTask> task = tier_->TakeSaved();
  if (task == nullptr) return;
  ExecutorAnswer saved{Prefixed(task->status, "saving rows"), std::move(task->files), {}};
  DT_CHECK(saved_.TryPush(saved));
}

void Executor::Answer(ExecutorAnswer answer) { DT_CHECK(answers_.TryPush(answer)); }

bool Executor::TakeMessage() {
  Result<PeerMessage> message = socket_->Receive(Patience());
  const StatusCode code = message.status().code();
  if (message.ok()) {
    frontend_.OnMessage(SystemClock().Now(), *std::move(message), outgoing_);
  } else if (code != StatusCode::kDeadlineExceeded && code != StatusCode::kCancelled) {
    Fail(WithWhere(message.status(), endpoint_));
    return false;
  }
  return true;
}

Duration Executor::Patience() const {
  if (tier_ != nullptr && tier_->busy()) return Duration::zero();
  if (save_.has_value() || report_by_.has_value()) return kSavePatience;
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
