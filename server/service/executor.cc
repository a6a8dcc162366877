#include "server/service/executor.h"

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/base/thread_name.h"
#include "common/runtime/work_span.h"

namespace dt::server {
namespace {

constinit WorkKind kExecutorWork{"server: messages"};

// At most this many messages, and bytes, go into one write of the log.
constexpr size_t kTurnMessages = 64;
constexpr size_t kTurnBytes = 64 << 20;

}  // namespace

Executor::Executor(ExecutorOptions options, std::unique_ptr<ServerSocket> socket, Network& network)
    : endpoint_(socket->endpoint()),
      socket_(std::move(socket)),
      network_(network),
      core_(std::move(options), [this] { socket_->Wake(); }),
      turned_(SystemClock().Now()),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

Executor::~Executor() {
  thread_.request_stop();
  socket_->Wake();
}

void Executor::Post(std::unique_ptr<ExecutorCommand> command) {
  DT_CHECK(commands_.TryPush(command));
  socket_->Wake();
}

// Should the queue be full, the executor has enough newer maps to take up; it gets the next one.
void Executor::SetMap(ShardMap map) {
  static_cast<void>(maps_.TryPush(map));
  socket_->Wake();
}

void Executor::Run(std::stop_token stop) {
  NameThread("executor");
  const WorkSpan span(kExecutorWork);
  while (!stop.stop_requested()) {
    turned_.store(SystemClock().Now(), std::memory_order_relaxed);
    if (!busy_) {
      if (auto command = commands_.Pop(Duration::zero())) {
        core_.Post(*std::move(command));
        busy_ = true;
      }
    }
    while (auto map = maps_.Pop(Duration::zero())) {
      core_.SetMap(SystemClock().Now(), *std::move(map));
    }
    core_.WorkOnDisk();
    core_.BeginTurn(SystemClock().Now());
    const bool alive = TakeMessages();
    core_.EndTurn(SystemClock().Now());
    SendAll();
    Publish();
    if (!alive) return;
  }
}

ExecutorReport Executor::Report(TimePoint now) const {
  return {SecondsBetween(turned_.load(std::memory_order_relaxed), now), core_.doing()};
}

bool Executor::TakeMessages() {
  Duration timeout = core_.UntilNextTurn(SystemClock().Now());
  for (size_t i = 0, bytes = 0; i < kTurnMessages && bytes < kTurnBytes; ++i) {
    Result<PeerMessage> message = socket_->Receive(timeout);
    const StatusCode code = message.status().code();
    if (code == StatusCode::kDeadlineExceeded || code == StatusCode::kCancelled) return true;
    if (!message.ok()) {
      Fail(WithWhere(message.status(), endpoint_));
      return false;
    }
    for (const Frame& frame : message->frames) bytes += frame.size();
    core_.OnMessage(SystemClock().Now(), *std::move(message));
    if (!core_.shares_turns()) return true;
    timeout = Duration::zero();
  }
  return true;
}

void Executor::SendAll() {
  for (PeerMessage& message : core_.outgoing()) {
    const Status sent = socket_->Send(message.peer, std::move(message.frames));
    if (!sent.ok()) LogWarn("server.answer_lost", {{"problem", MessageOf(sent)}});
  }
  core_.outgoing().clear();
  SendLetters();
}

// What cannot be sent now is lost, as in a network; the links send it again.
void Executor::SendLetters() {
  for (ChainLinks::Letter& letter : core_.letters()) {
    std::unique_ptr<ClientSocket>& socket = servers_[letter.endpoint];
    if (socket == nullptr) {
      Result<std::unique_ptr<ClientSocket>> connected = network_.Connect(letter.endpoint);
      if (!connected.ok()) {
        LogWarn("server.no_way_to_server", {{"problem", ToText(connected.status())}});
        continue;
      }
      socket = *std::move(connected);
    }
    socket->Send(std::move(letter.frames)).IgnoreError();
  }
  core_.letters().clear();
}

void Executor::Publish() {
  step_.store(core_.step(), std::memory_order_relaxed);
  log_bytes_.store(core_.log_bytes(), std::memory_order_relaxed);
  if (!core_.failure().ok()) Fail(core_.failure());
  // Dropped if the server has not taken the last ones yet.
  if (auto sizes = core_.TakeSizes()) static_cast<void>(sizes_.TryPush(*sizes));
  // What does not fit is told again.
  if (auto copied = core_.TakeCopied(); !copied.empty()) {
    static_cast<void>(copied_.TryPush(copied));
  }
  if (auto saved = core_.TakeSaved()) DT_CHECK(saved_.TryPush(*saved));
  if (auto answer = core_.TakeAnswer()) {
    busy_ = false;
    DT_CHECK(answers_.TryPush(*answer));
  }
}

// Reports the first failure only: it ends the server.
void Executor::Fail(const Status& status) {
  if (std::exchange(failed_, true)) return;
  Status why = status;
  static_cast<void>(failures_.TryPush(why));
}

}  // namespace dt::server
