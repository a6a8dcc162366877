#include "server/service/executor.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "server/shard/checksum.h"

namespace dt::server {
namespace {

constexpr Duration kPatience = milliseconds(100);  // A stop or a command wakes earlier.
constexpr Duration kSizesEvery = milliseconds(500);
constexpr size_t kTurnMessages = 64;     // That share a write to the log,
constexpr size_t kTurnBytes = 64 << 20;  // likewise.

}  // namespace

Executor::Executor(ExecutorOptions options, std::unique_ptr<ServerSocket> socket)
    : options_(std::move(options)),
      endpoint_(socket->endpoint()),
      socket_(std::move(socket)),
      held_([this] { socket_->Wake(); }),
      frontend_(options_.tables, options_.pull_patience),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Executor::~Executor() {
  thread_.request_stop();
  socket_->Wake();
}

void Executor::Post(std::unique_ptr<ExecutorCommand> command) {
  DT_CHECK(commands_.TryPush(command));
  socket_->Wake();
}

void Executor::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const TimePoint now = SystemClock().Now();
    PassTime(now);
    WorkOnTier();
    WorkOnCommand(now);
    const bool alive = TakeMessages();
    frontend_.OnTick(SystemClock().Now(), outgoing_);
    CommitLog();
    SendAll();
    NoteProgress();
    if (!alive) return;
  }
}

// For rows that expire by time, and for those who watch.
void Executor::PassTime(TimePoint now) {
  ShardSet* const shards = held_.shards();
  if (shards != nullptr) shards->PassTime(now - time_passed_until_);
  time_passed_until_ = now;
  if (shards == nullptr || now < next_sizes_) return;
  next_sizes_ = now + kSizesEvery;
  std::vector<TableReport> sizes = SizesOf(shards->tables(), shards->shards());
  static_cast<void>(sizes_.TryPush(sizes));  // The server takes them when it can.
}

void Executor::WorkOnTier() {
  DiskTier* const tier = held_.tier();
  if (tier == nullptr) return;
  const uint64_t before = tier->progress();
  tier->Work();
  if (tier->progress() != before) held_.shards()->Resume();
  const std::unique_ptr<CheckpointTask> task = tier->TakeSaved();
  if (task == nullptr) return;
  SavedRows saved{Prefixed(task->status, "saving rows"), std::move(task->files)};
  DT_CHECK(saved_.TryPush(saved));
}

void Executor::WorkOnCommand(TimePoint now) {
  if (command_ == nullptr) {
    auto next = commands_.Pop(Duration::zero());
    if (!next.has_value()) return;
    command_ = *std::move(next);
    if (command_->replaces_rows()) frontend_.Serve(nullptr, nullptr, outgoing_);
  }
  std::optional<ExecutorAnswer> answer = command_->Work(now, held_);
  if (!answer.has_value()) return;
  // With half of the rows it serves nobody.
  if (command_->replaces_rows() && answer->status.ok()) {
    frontend_.Serve(held_.shards(), held_.log(), outgoing_);
  }
  command_.reset();
  DT_CHECK(answers_.TryPush(*answer));
}

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
    if (held_.log() == nullptr) return true;
    patience = Duration::zero();
  }
  return true;
}

void Executor::CommitLog() {
  PushLog* const log = held_.log();
  if (log == nullptr) return;
  const Status written = log->Commit();
  frontend_.OnCommit(written, outgoing_);
  log_bytes_.store(log->bytes(), std::memory_order_relaxed);
  if (written.ok()) {
    if (log_failing_since_.has_value()) LogInfo("server.log_goes_on", {{"bytes", log->bytes()}});
    log_failing_since_.reset();
    return;
  }
  const TimePoint now = SystemClock().Now();
  if (!log_failing_since_.has_value()) {
    log_failing_since_ = now;
    LogWarn("server.log_not_written", {{"problem", ToText(written)}});
  }
  if (log->broken() || now - *log_failing_since_ > options_.log_patience) Fail(written);
}

Duration Executor::Patience() const {
  if (held_.tier() != nullptr && held_.tier()->busy()) return Duration::zero();
  if (command_ != nullptr) return command_->patience();
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
  if (held_.shards() == nullptr) return;
  const ShardSet& shards = *held_.shards();
  const DiskTier& tier = *held_.tier();
  if (!tier.failure().ok()) Fail(tier.failure());
  if (shards.clock() == clock() && own_memory_bytes_ != 0) return;
  clock_.store(shards.clock(), std::memory_order_relaxed);
  const uint64_t bytes = shards.bytes() + tier.bytes();
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
