#include "server/service/executor_core.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "server/shard/checksum.h"

namespace dt::server {
namespace {

constexpr Duration kTurnEvery = milliseconds(100);  // A command or a stop ends the wait.
constexpr Duration kSizesEvery = milliseconds(500);

}  // namespace

ExecutorCore::ExecutorCore(ExecutorOptions options, std::function<void()> wake)
    : options_(std::move(options)),
      state_(std::move(wake), options_.move_rate, options_.lease),
      frontend_(options_.tables, options_.pull_timeout) {}

void ExecutorCore::Post(std::unique_ptr<ExecutorCommand> command) {
  DT_CHECK(command_ == nullptr);
  command_ = std::move(command);
  if (command_->replaces_rows()) frontend_.Serve(nullptr, nullptr, nullptr, false, outgoing_);
}

void ExecutorCore::BeginTurn(TimePoint now) {
  PassTime(now);
  WorkOnCommand(now);
  if (state_.shards() == nullptr) return;
  state_.FollowMap(now);
  frontend_.TakeEarly(now);
}

void ExecutorCore::OnMessage(TimePoint now, PeerMessage message) {
  frontend_.OnMessage(now, std::move(message), outgoing_);
}

void ExecutorCore::EndTurn(TimePoint now) {
  frontend_.OnTick(now, outgoing_);
  if (!frontend_.failure().ok()) Fail(frontend_.failure());
  WorkOnChains(now);
  CommitLog(now);
  NoteProgress();
}

// Moves time on for rows that expire by time, and now and then takes the sizes.
void ExecutorCore::PassTime(TimePoint now) {
  ShardSet* const shards = state_.shards();
  // While a log is replayed, it says when time has passed.
  const bool replaced = command_ != nullptr && command_->replaces_rows();
  if (shards != nullptr && !replaced && time_passed_until_.has_value()) {
    shards->PassTime(now - *time_passed_until_);
  }
  time_passed_until_ = now;
  if (shards == nullptr || now < next_sizes_) return;
  next_sizes_ = now + kSizesEvery;
  sizes_ = {SizesOf(shards->tables(), shards->shards()), {}, state_.links().silent()};
  state_.AddTo(sizes_->chains);
}

void ExecutorCore::WorkOnDisk() {
  DiskTier* const tier = state_.tier();
  disk_brought_ = false;
  if (tier == nullptr) return;
  const uint64_t before = tier->progress();
  tier->Work();
  disk_brought_ = tier->progress() != before;
  if (disk_brought_) {
    state_.shards()->Resume();
    const Status followed = state_.links().Resume(*state_.shards());
    if (!followed.ok()) Fail(followed);
  }
  state_.shards()->RemoveRows();
  const std::unique_ptr<CheckpointTask> task = tier->TakeSaved();
  if (task == nullptr) return;
  saved_ = SavedRows{Prefixed(task->status, "saving rows"), std::move(task->files)};
}

void ExecutorCore::WorkOnCommand(TimePoint now) {
  if (command_ == nullptr) return;
  SetDoing("an order");
  std::optional<ExecutorAnswer> answer = command_->Work(now, state_);
  SetDoing("");
  if (!answer.has_value()) return;
  // After an error only some rows are there, so nothing is served.
  if (command_->replaces_rows() && answer->status.ok()) {
    frontend_.Serve(state_.shards(), &state_.links(), &state_.copies(), state_.log() != nullptr,
                    outgoing_);
  }
  command_.reset();
  answer_ = std::move(answer);
}

void ExecutorCore::WorkOnChains(TimePoint now) {
  if (state_.shards() == nullptr) return;
  state_.FollowMap(now);
  SetDoing("a copy of a shard");  // Which it reads from disk, too.
  const Status copied =
      state_.copying()
          ? state_.copies().Work(now, *state_.shards(), *state_.tier(), state_.links(), letters_)
          : OkStatus();
  SetDoing("");
  if (copied.code() == StatusCode::kOutOfRange) {
    LogWarn("server.bad_copy", {{"problem", MessageOf(copied)}});
  } else if (!copied.ok()) {
    Fail(copied);
  }
  state_.links().TakeLetters(now, *state_.shards(), letters_);
}

void ExecutorCore::CommitLog(TimePoint now) {
  RecordLog* const log = state_.log();
  if (log == nullptr) return;
  SetDoing("a write to its log");
  const Status written = log->Commit();
  SetDoing("");
  frontend_.OnCommit(written, outgoing_);
  log_bytes_ = log->bytes();
  // Other servers are told of nothing that is not in the log. What they miss is sent again.
  if (!written.ok()) letters_.clear();
  if (written.ok()) {
    if (log_failing_since_.has_value()) LogInfo("server.log_goes_on", {{"bytes", log->bytes()}});
    log_failing_since_.reset();
    return;
  }
  if (!log_failing_since_.has_value()) {
    log_failing_since_ = now;
    LogWarn("server.log_not_written", {{"problem", ToText(written)}});
  }
  if (log->broken() || now - *log_failing_since_ > options_.log_timeout) Fail(written);
}

Duration ExecutorCore::UntilNextTurn(TimePoint now) const {
  // The end of the turn passes on results of the disk and of orders, so it must not be waited for.
  if (disk_brought_ || answer_.has_value() || saved_.has_value()) return Duration::zero();
  if (!outgoing_.empty() || frontend_.may_answer()) return Duration::zero();
  if (state_.tier() != nullptr && state_.tier()->busy()) return Duration::zero();
  if (state_.shards() != nullptr && state_.shards()->HasRowsToRemove()) return Duration::zero();
  if (state_.links().has_more()) return Duration::zero();
  if (command_ != nullptr) return command_->timeout();
  const TimePoint next = std::min(frontend_.NextDeadline(), state_.copies().next_work());
  if (next == TimePoint::max()) return kTurnEvery;
  return std::clamp<Duration>(next - now, Duration::zero(), kTurnEvery);
}

// A step that shows here has been applied; what it needs of memory is known only now.
void ExecutorCore::NoteProgress() {
  if (state_.shards() == nullptr) return;
  const ShardSet& shards = *state_.shards();
  const DiskTier& tier = *state_.tier();
  if (!tier.failure().ok()) Fail(tier.failure());
  if (shards.clock() == step_ && own_memory_bytes_ != 0) return;
  step_ = shards.clock();
  const uint64_t bytes = shards.bytes() + tier.bytes();
  const uint64_t total =
      options_.memory_bytes->fetch_add(bytes - own_memory_bytes_) + bytes - own_memory_bytes_;
  own_memory_bytes_ = bytes;
  // Rows of the steps under way cannot leave, so use may exceed the budget somewhat.
  if (total <= options_.memory_bytes_max / 20 * 21 + options_.memory_slack) return;
  Fail(WithHint(Unavailable("the rows that must stay in memory need {}; this server may use {}",
                            BytesText(total), BytesText(options_.memory_bytes_max)),
                "raise cluster.server.memory, start more servers, or make batches smaller"));
}

}  // namespace dt::server
