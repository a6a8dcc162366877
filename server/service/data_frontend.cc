#include "server/service/data_frontend.h"

#include <algorithm>

#include "common/base/log.h"
#include "server/shard/handlers.h"

namespace dt::server {
namespace {

constexpr size_t kParkedMax = 4096;
constexpr size_t kPeersLoggedMax = 1024;
constexpr Duration kLogInterval = std::chrono::minutes(1);

}  // namespace

PeerMessage DataFrontend::Answer(const PeerId& peer, uint64_t request, Status status,
                                 Frame values) const {
  DataReply reply{request, std::move(status), std::move(values)};
  if (shards_ != nullptr) {
    reply.disk = shards_->below();
    if (shards_->asynchronous()) reply.clock = shards_->clock();
  }
  return {peer, Encode(reply)};
}

DataFrontend::DataFrontend(std::vector<WireTable> tables, Duration pull_patience)
    : tables_(std::move(tables)), pull_patience_(pull_patience) {}

void DataFrontend::Serve(ShardSet* shards, PushLog* log, std::vector<PeerMessage>& answers) {
  shards_ = shards;
  OnCommit(Busy("the server takes up another state"), answers);
  log_ = log;
  log_status_ = OkStatus();
  for (const Parked& p : parked_) {
    answers.push_back(Answer(p.peer, p.request.request, Stale("the job starts again elsewhere")));
  }
  parked_.clear();
}

Status DataFrontend::Ready() const {
  return shards_ != nullptr ? OkStatus() : Busy("the server has not been started yet");
}

void DataFrontend::OnMessage(TimePoint now, PeerMessage message,
                             std::vector<PeerMessage>& answers) {
  Frames raw;  // For the log: shares the bytes, which must stay as they were hashed and applied.
  if (log_ != nullptr) {
    for (Frame& frame : message.frames) frame = Frame::Settled(std::move(frame));
    raw = message.frames;
  }
  Result<DataRequest> request = DecodeDataRequest(std::move(message.frames), tables_);
  if (!request.ok()) {
    OnBad(now, message.peer, request.status());
    answers.push_back(Answer(message.peer, 0, request.status()));
    return;
  }
  const Status ready = Ready();
  switch (request->kind) {
    case DataRequest::Kind::kPull:
      OnPull(now, message.peer, std::move(request->pull), answers);
      break;
    case DataRequest::Kind::kPush:
      OnPush(now, message.peer, std::move(request->push), raw, answers);
      break;
    case DataRequest::Kind::kComplete:
      if (ready.ok()) OnBad(now, message.peer, HandleComplete(*shards_, request->complete));
      break;
  }
  ServeParked(answers);
}

void DataFrontend::OnPush(TimePoint now, const PeerId& peer, PushRequest request, const Frames& raw,
                          std::vector<PeerMessage>& answers) {
  const uint64_t number = request.request;
  const Step step = request.step;
  Status status = Ready();
  if (status.ok() && !log_status_.ok()) status = Busy("{}", MessageOf(log_status_));
  if (status.ok()) status = HandlePush(*shards_, std::move(request));
  OnBad(now, peer, status);
  if (status.ok() && log_ != nullptr) {
    log_->Append(step, raw);
    unlogged_.push_back({peer, number});
  } else {
    answers.push_back(Answer(peer, number, status));
  }
}

void DataFrontend::OnCommit(const Status& written, std::vector<PeerMessage>& answers) {
  log_status_ = written;
  const Status status = written.ok() ? OkStatus() : Busy("{}", MessageOf(written));
  for (const Unlogged& push : unlogged_) answers.push_back(Answer(push.peer, push.request, status));
  unlogged_.clear();
}

void DataFrontend::OnPull(TimePoint now, const PeerId& peer, PullRequest request,
                          std::vector<PeerMessage>& answers) {
  Status status = Ready();
  if (request.mode == PullMode::kLookahead) {
    if (status.ok()) OnBad(now, peer, HandleLookahead(*shards_, request));
    return;
  }
  if (status.ok()) {
    Result<std::optional<Frame>> values = HandlePull(*shards_, request);
    if (values.ok() && values->has_value()) {
      answers.push_back(Answer(peer, request.request, OkStatus(), **std::move(values)));
      return;
    }
    status = values.status();
  }
  const bool again = std::ranges::any_of(parked_, [&](const Parked& p) {
    return p.request.request == request.request && p.peer == peer;
  });
  if (status.ok() && again) return;
  if (status.ok() && parked_.size() >= kParkedMax) {
    status = Busy("{} pulls wait already", parked_.size());
  }
  if (status.ok()) {
    parked_.push_back({peer, std::move(request), now + pull_patience_});
    return;
  }
  OnBad(now, peer, status);
  answers.push_back(Answer(peer, request.request, status));
}

// Parked pulls wait for a clock or for the disk.
void DataFrontend::ServeParked(std::vector<PeerMessage>& answers) {
  if (shards_ == nullptr || parked_.empty() || shards_->progress() == served_at_) return;
  served_at_ = shards_->progress();
  std::erase_if(parked_, [&](const Parked& p) {
    Result<std::optional<Frame>> values = HandlePull(*shards_, p.request);
    if (values.ok() && !values->has_value()) return false;
    answers.push_back(values.ok()
                          ? Answer(p.peer, p.request.request, OkStatus(), **std::move(values))
                          : Answer(p.peer, p.request.request, values.status()));
    return true;
  });
}

void DataFrontend::OnTick(TimePoint now, std::vector<PeerMessage>& answers) {
  ServeParked(answers);
  std::erase_if(parked_, [&](const Parked& p) {
    if (now < p.deadline) return false;
    const std::string why =
        shards_->Reached(p.request.step) ? "its rows are on disk" : shards_->SlowestText();
    const Status late = Timeout("pull of step {} waited {:.0f} s: {}", p.request.step,
                                std::chrono::duration<double>(pull_patience_).count(), why);
    answers.push_back(Answer(p.peer, p.request.request, late));
    return true;
  });
}

TimePoint DataFrontend::NextDeadline() const {
  return parked_.empty() ? TimePoint::max() : parked_.front().deadline;
}

// Malformed messages only: stale and early ones belong to the protocol.
void DataFrontend::OnBad(TimePoint now, const PeerId& peer, const Status& status) {
  if (status.code() != StatusCode::kOutOfRange) return;
  ++bad_messages_;
  if (last_logged_.size() >= kPeersLoggedMax) last_logged_.clear();
  const auto [at, fresh] = last_logged_.try_emplace(peer, now);
  if (!fresh && now - at->second < kLogInterval) return;
  at->second = now;
  LogWarn("server.bad_message", {{"problem", MessageOf(status)}, {"bad_so_far", bad_messages_}});
}

}  // namespace dt::server
