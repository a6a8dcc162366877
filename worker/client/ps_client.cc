#include "worker/client/ps_client.h"

namespace dt::worker {
namespace {

constexpr Duration kPoll = milliseconds(50);  // A wait notices the job's end within this time.

RequestBook::Options RequestsOf(const PsClient::Options& options) {
  RequestBook::Options requests = options.requests;
  requests.frames = &options.network->frames();
  return requests;
}

}  // namespace

Result<std::unique_ptr<PsClient>> PsClient::Open(const View& view, Options options) {
  auto client = std::make_unique<PsClient>(view, std::move(options));
  for (uint32_t e = 0; e < client->book_.routes().executors().size(); ++e) {
    DT_TRY_STATUS(client->SocketOf(e).status());
  }
  return client;
}

PsClient::PsClient(const View& view, Options options)
    : options_(std::move(options)), book_(view, RequestsOf(options_)) {}

Result<ClientSocket*> PsClient::SocketOf(uint32_t executor) {
  if (sockets_.size() <= executor) sockets_.resize(executor + 1);
  std::unique_ptr<ClientSocket>& socket = sockets_[executor];
  if (socket == nullptr) {
    DT_TRY(socket, options_.network->Connect(book_.routes().executors()[executor].endpoint));
  }
  return socket.get();
}

Status PsClient::Send(RequestBook::Outgoing& letter) {
  DT_TRY(ClientSocket* const socket, SocketOf(letter.executor));
  return socket->Send(std::move(letter.frames));
}

void PsClient::TakeMap() {
  if (!options_.newer_map) return;
  const std::optional<ShardMap> map = options_.newer_map(book_.routes().map().version);
  if (map.has_value()) book_.OnMap(options_.clock->Now(), *map);
}

void PsClient::SendAll() {
  for (RequestBook::Outgoing& letter : book_.TakeOutgoing(options_.clock->Now())) {
    if (!Send(letter).ok()) book_.OnSendFailed(options_.clock->Now(), letter);
  }
}

// Receives an answer, if one comes soon; now and then checks deadlines and interruptions.
Status PsClient::WaitForOne(uint32_t executor, TimePoint& checked) {
  DT_TRY(ClientSocket* const socket, SocketOf(executor));
  Result<Frames> frames = socket->Receive(kPoll);
  if (frames.ok()) {
    DT_TRY_STATUS(book_.OnAnswer(options_.clock->Now(), executor, *std::move(frames)));
    SendAll();  // Some requests may go elsewhere now.
  } else if (frames.status().code() != StatusCode::kDeadlineExceeded) {
    return WithWhere(frames.status(), book_.routes().executors()[executor].endpoint);
  }
  const TimePoint now = options_.clock->Now();
  if (now - checked < kPoll) return OkStatus();
  if (options_.interrupted) DT_TRY_STATUS(options_.interrupted());
  TakeMap();
  DT_TRY_STATUS(book_.CheckTimes(now));
  SendAll();
  DT_TRY_STATUS(WatchServers());
  checked = now;
  return OkStatus();
}

// What the others have answered must be looked for before they count as silent.
Status PsClient::WatchServers() {
  if (!options_.unreachable) return OkStatus();
  for (RequestBook::Outgoing& ping : book_.Pings(options_.clock->Now())) Send(ping).IgnoreError();
  for (uint32_t e = 0; e < sockets_.size() && book_.has_pinged(); ++e) {
    while (sockets_[e] != nullptr) {
      Result<Frames> frames = sockets_[e]->Receive(Duration::zero());
      if (!frames.ok()) break;
      DT_TRY_STATUS(book_.OnAnswer(options_.clock->Now(), e, *std::move(frames)));
    }
  }
  TellUnreachable(true, book_.Silent(options_.clock->Now()));
  return OkStatus();
}

void PsClient::TellUnreachable(bool waiting, std::vector<ProcessId> unreachable) {
  if (!options_.unreachable) return;
  if (waiting == told_waiting_ && unreachable == told_unreachable_) return;
  told_waiting_ = waiting;
  told_unreachable_ = std::move(unreachable);
  options_.unreachable(told_waiting_, told_unreachable_);
}

void PsClient::BeginView(ViewNumber number) {
  book_.BeginView(number);
  TellUnreachable(false, {});
}

void PsClient::BeginPull(const LookupPlan& plan, Step step, PullMode mode) {
  TakeMap();
  book_.BeginPull(options_.clock->Now(), plan, step, mode);
  SendAll();
}

Status PsClient::FinishPull(const LookupPlan& plan, PulledRows& rows) {
  book_.BeginRows(plan, rows);
  TimePoint checked = options_.clock->Now();
  for (;;) {
    book_.TakeRows(plan, rows);
    const std::optional<uint32_t> executor = book_.Awaited(plan);
    if (!executor.has_value()) break;
    DT_TRY_STATUS(WaitForOne(*executor, checked));
  }
  TellUnreachable(false, {});
  return OkStatus();
}

void PsClient::Prefetch(const LookupPlan& plan, Step step) {
  for (RequestBook::Outgoing& letter : book_.Prefetch(plan, step)) Send(letter).IgnoreError();
}

void PsClient::BeginPush(const PushInfo& info, const LookupPlan& plan,
                         std::span<const std::span<const float>> gradients) {
  book_.BeginPush(options_.clock->Now(), info, plan, gradients);
  SendAll();
}

void PsClient::BeginSetAbsent(const LookupPlan& plan,
                              std::span<const std::span<const float>> values) {
  BeginPush({.mode = PushMode::kSetAbsent}, plan, values);
}

Status PsClient::WaitForPushes() { return WaitForPushesBefore(~uint64_t{0}); }

Status PsClient::WaitForPushesBefore(uint64_t end) {
  TimePoint checked = options_.clock->Now();
  while (const std::optional<uint32_t> executor = book_.AwaitedBefore(end)) {
    DT_TRY_STATUS(WaitForOne(*executor, checked));
  }
  TellUnreachable(false, {});
  return OkStatus();
}

Status PsClient::Complete(Step step) {
  for (RequestBook::Outgoing& letter : book_.Complete(step)) {
    const Status sent = Send(letter);
    // A full queue does no harm: the next step's requests imply the message.
    if (!sent.ok() && sent.code() != StatusCode::kResourceExhausted) {
      return WithWhere(sent, book_.routes().executors()[letter.executor].endpoint);
    }
  }
  return OkStatus();
}

}  // namespace dt::worker
