#include "server/service/executor.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "server/shard/checksum.h"

namespace dt::server {
namespace {

constexpr Duration kPatience = milliseconds(100);     // A stop or a command wakes earlier.
constexpr Duration kSavePatience = milliseconds(10);  // While a save waits for its step.

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
    TakeCommands();
    TrySave();
    const bool alive = TakeMessage();
    frontend_.OnTick(SystemClock().Now(), outgoing_);
    SendAll();
    NoteProgress();
    if (!alive) return;
  }
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
      Answer(CarryOut(std::get<ReportCommand>(*command)));
    }
  }
}

ExecutorAnswer Executor::CarryOut(BeginCommand& command) {
  frontend_.Serve(nullptr, outgoing_);
  shards_ = std::make_unique<ShardSet>(std::move(command.shards));
  frontend_.Serve(shards_.get(), outgoing_);
  return {};
}

ExecutorAnswer Executor::CarryOut(LoadCommand& command) {
  if (shards_ == nullptr) return {Internal("load before the start of the job"), {}, {}};
  frontend_.Serve(nullptr, outgoing_);
  Status status = LoadRows(command.folder, command.step, command.generation, *shards_);
  // With half of the rows it serves nobody.
  if (status.ok()) frontend_.Serve(shards_.get(), outgoing_);
  return {std::move(status), {}, {}};
}

ExecutorAnswer Executor::CarryOut(ReportCommand&) {
  if (shards_ == nullptr) return {Internal("report before the start of the job"), {}, {}};
  shards_->Advance(std::numeric_limits<Step>::max());
  return {OkStatus(), {}, ReportTables(shards_->tables(), shards_->shards())};
}

void Executor::TrySave() {
  if (!save_.has_value()) return;
  const SaveCommand& command = save_->command;
  ExecutorAnswer answer;
  if (shards_ == nullptr) {
    answer.status = Internal("save before the start of the job");
  } else {
    // The scheduler orders a save when every worker is past the step: all before is complete.
    shards_->Advance(command.step);
    if (!shards_->Reached(command.step)) {
      if (SystemClock().Now() < save_->deadline) return;
      answer.status = Timeout("save at step {}: {}", command.step, shards_->SlowestText());
    } else {
      Result<CheckpointFile> file = SaveRows(*shards_, command.step, command.place);
      answer.status = file.status();
      if (file.ok()) answer.file = *std::move(file);
    }
  }
  save_.reset();
  Answer(std::move(answer));
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
  if (save_.has_value()) return kSavePatience;
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
  if (shards_ == nullptr || (shards_->clock() == clock() && own_memory_bytes_ != 0)) return;
  clock_.store(shards_->clock(), std::memory_order_relaxed);
  const uint64_t bytes = shards_->bytes();
  const uint64_t total =
      options_.memory_bytes->fetch_add(bytes - own_memory_bytes_) + bytes - own_memory_bytes_;
  own_memory_bytes_ = bytes;
  if (total <= options_.memory_bytes_max) return;
  Fail(WithHint(Unavailable("the tables need {}; this server may use {}", BytesText(total),
                            BytesText(options_.memory_bytes_max)),
                "raise cluster.server.memory, or start more servers"));
}

void Executor::Fail(Status status) {
  if (failed_) return;
  failed_ = true;
  static_cast<void>(failures_.TryPush(status));  // One is enough to end the server.
}

}  // namespace dt::server
