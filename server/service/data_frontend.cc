#include "server/service/data_frontend.h"

#include <algorithm>

#include "common/base/log.h"
#include "server/shard/handlers.h"

namespace dt::server {
namespace {

constexpr size_t kParkedMax = 4096;
constexpr size_t kParkedBytesMax = 256 << 20;
constexpr size_t kParkedOfPeerMax = 1024;
constexpr size_t kParkedBytesOfPeerMax = 64 << 20;
constexpr size_t kEarlyMax = 256;
constexpr uint64_t kEarlyBytesMax = 64 << 20;
constexpr size_t kLinesMax = 10;  // Log lines per minute; a peer that reconnects counts as new.
constexpr Duration kLogInterval = std::chrono::minutes(1);

}  // namespace

PeerMessage DataFrontend::Answer(const Asker& to, Status status, std::vector<ShardId> refused,
                                 Frame values) const {
  DataReply reply{to.request, std::move(status), std::move(values)};
  if (shards_ != nullptr) {
    reply.disk = shards_->below();
    if (shards_->asynchronous()) reply.clock = shards_->clock();
    if (!refused.empty()) reply.change = ChangeSince(shards_->view().map, to.map);
    reply.refused = std::move(refused);
  }
  return {to.peer, Encode(reply)};
}

DataFrontend::DataFrontend(std::vector<WireTable> tables, Duration pull_timeout)
    : tables_(std::move(tables)), pull_timeout_(pull_timeout) {}

void DataFrontend::Serve(ShardSet* shards, ChainLinks* links, ShardCopies* copies, bool logged,
                         std::vector<PeerMessage>& answers) {
  shards_ = shards;
  links_ = links;
  copies_ = copies;
  const Status busy = Busy("the server takes up another state");
  OnCommit(busy, answers);
  for (const auto& [key, push] : unstable_) answers.push_back(Answer(push.asker, busy));
  unstable_.clear();
  logged_to_disk_ = logged;
  log_status_ = OkStatus();
  served_at_ = disk_served_at_ = 0;
  early_.clear();
  early_bytes_ = 0;
  for (auto at = parked_.begin(); at != parked_.end(); at = Unpark(at)) {
    answers.push_back(Answer(at->second.asker(), Stale("the job starts again elsewhere")));
  }
}

Status DataFrontend::Ready() const {
  return shards_ != nullptr ? OkStatus() : Busy("the server has not been started yet");
}

void DataFrontend::OnMessage(TimePoint now, PeerMessage message,
                             std::vector<PeerMessage>& answers) {
  // The log, and the other members of a chain, need the bytes as they were applied.
  if (logged_to_disk_ || (links_ != nullptr && links_->active())) {
    for (Frame& frame : message.frames) frame = Frame::Settled(std::move(frame));
  }
  Result<DataRequest> request = DecodeDataRequest(std::move(message.frames), tables_);
  if (!request.ok()) {
    OnBad(now, message.peer, request.status());
    answers.push_back(Answer({message.peer, 0, {}}, request.status()));
    return;
  }
  const Status ready = Ready();
  switch (request->kind) {
    case DataRequest::Kind::kPull:
      OnPull(now, message.peer, std::move(request->pull), answers);
      break;
    case DataRequest::Kind::kPush:
      OnPush(now, message.peer, std::move(request->push), answers);
      break;
    case DataRequest::Kind::kComplete:
      if (ready.ok()) OnBad(now, message.peer, HandleComplete(*shards_, request->complete));
      break;
    case DataRequest::Kind::kRecords:
      if (ready.ok()) OnRecords(now, message.peer, std::move(request->records));
      break;
    case DataRequest::Kind::kAcks:
      if (ready.ok()) OnBad(now, message.peer, links_->OnAcks(now, request->acks, *shards_));
      break;
    case DataRequest::Kind::kCopy:
      if (ready.ok()) OnCopy(now, message.peer, std::move(request->copy));
      break;
    case DataRequest::Kind::kCopyAck:
      if (ready.ok()) copies_->OnCopyAck(now, request->copy_ack, *shards_, *links_);
      break;
  }
  ServeParked(answers);
}

// ------------------------------------------------------------ messages of other servers

void DataFrontend::OnRecords(TimePoint now, const PeerId& peer, RecordsRequest message) {
  MapVersion since;
  for (const RecordPart& part : message.parts) since = std::max(since, part.since);
  if (IsEarly(message.stamp, since)) {
    const uint64_t bytes = message.heads.size() + message.keys.size() + message.gradients.size();
    return KeepEarly(bytes, [this, peer, kept = std::move(message)](TimePoint later) mutable {
      OnRecords(later, peer, std::move(kept));
    });
  }
  Status taken = links_->OnRecords(std::move(message), *shards_);
  if (taken.ok()) return;
  OnBad(now, peer, taken);
  if (taken.code() == StatusCode::kDataLoss) failure_.Update(std::move(taken));
}

void DataFrontend::OnCopy(TimePoint now, const PeerId& peer, CopyRequest message) {
  if (IsEarly(message.stamp, message.since)) {
    const uint64_t bytes = message.rows.size() + message.lives.size() + message.heads.size() +
                           message.keys.size() + message.gradients.size();
    return KeepEarly(bytes, [this, peer, kept = std::move(message)](TimePoint later) mutable {
      OnCopy(later, peer, std::move(kept));
    });
  }
  OnBad(now, peer, copies_->OnCopy(std::move(message), *shards_));
}

bool DataFrontend::IsEarly(const Stamp& stamp, MapVersion since) const {
  return stamp.generation == shards_->generation() && stamp.server == shards_->self() &&
         since > shards_->view().map.version;
}

// If there are too many, the oldest ones go; they are sent again.
void DataFrontend::KeepEarly(uint64_t bytes, std::function<void(TimePoint)> take) {
  early_at_ = shards_->view().map.version;
  early_.push_back({bytes, std::move(take)});
  early_bytes_ += bytes;
  while (early_.size() > kEarlyMax || early_bytes_ > kEarlyBytesMax) {
    early_bytes_ -= early_.front().bytes;
    early_.pop_front();
  }
}

void DataFrontend::TakeEarly(TimePoint now) {
  if (shards_ == nullptr || early_.empty() || shards_->view().map.version == early_at_) return;
  early_bytes_ = 0;
  for (const Early& early : std::exchange(early_, {})) early.take(now);
}

// ------------------------------------------------------------ requests of workers

void DataFrontend::OnPush(TimePoint now, const PeerId& peer, PushRequest request,
                          std::vector<PeerMessage>& answers) {
  const Asker asker{peer, request.request, request.stamp.map};
  const ShardPieces pieces = request.pieces;
  PushOutcome outcome{.status = Ready()};
  if (outcome.status.ok() && !log_status_.ok()) outcome.status = Busy("{}", MessageOf(log_status_));
  if (outcome.status.ok() && links_->full()) {
    outcome.status =
        Busy("{} bytes wait for the other members of their chains", links_->kept_bytes());
  }
  if (outcome.status.ok()) outcome = HandlePush(*shards_, std::move(request));
  OnBad(now, peer, outcome.status);
  const bool some = outcome.status.ok() && outcome.refused.size() < pieces.size();
  auto unstable =
      some ? UnstableOf(pieces, outcome.refused) : std::vector<std::pair<ShardId, Position>>();
  if (!unstable.empty()) {
    unstable_[{peer, asker.request}] = {asker, std::move(outcome.refused), std::move(unstable)};
  } else if (some && logged_to_disk_) {
    unlogged_.push_back({asker, std::move(outcome.refused)});
  } else {
    answers.push_back(Answer(asker, std::move(outcome.status), std::move(outcome.refused)));
  }
}

std::vector<std::pair<ShardId, Position>> DataFrontend::UnstableOf(
    const ShardPieces& pieces, std::span<const ShardId> refused) const {
  std::vector<std::pair<ShardId, Position>> unstable;
  if (!links_->active()) return unstable;
  for (const ShardPiece& piece : pieces) {
    if (std::ranges::binary_search(refused, piece.shard)) continue;
    const Position position = shards_->Find(piece.shard)->position();
    if (!links_->IsStable(piece.shard, position)) unstable.emplace_back(piece.shard, position);
  }
  return unstable;
}

void DataFrontend::AnswerStable(std::vector<PeerMessage>& answers) {
  if (unstable_.empty() || links_->progress() == stable_at_) return;
  stable_at_ = links_->progress();
  for (auto at = unstable_.begin(); at != unstable_.end();) {
    Unstable& push = at->second;
    std::erase_if(push.records, [&](const auto& record) {
      const auto& [shard, position] = record;
      if (shards_->IsMember(shard)) return links_->IsStable(shard, position);
      // It has left before the next member had the record: its new head takes it, if it has not.
      push.refused.insert(std::ranges::upper_bound(push.refused, shard), shard);
      return true;
    });
    if (!push.records.empty()) {
      ++at;
      continue;
    }
    // It may be stable only because there is no next member any more.
    if (logged_to_disk_) {
      unlogged_.push_back({push.asker, std::move(push.refused)});
    } else {
      answers.push_back(Answer(push.asker, OkStatus(), std::move(push.refused)));
    }
    at = unstable_.erase(at);
  }
}

void DataFrontend::OnCommit(const Status& written, std::vector<PeerMessage>& answers) {
  log_status_ = written;
  const Status status = written.ok() ? OkStatus() : Busy("{}", MessageOf(written));
  for (Unlogged& push : unlogged_) {
    answers.push_back(Answer(push.asker, status, std::move(push.refused)));
  }
  unlogged_.clear();
}

void DataFrontend::OnPull(TimePoint now, const PeerId& peer, PullRequest request,
                          std::vector<PeerMessage>& answers) {
  const Asker asker{peer, request.request, request.stamp.map};
  Status status = Ready();
  if (request.mode == PullMode::kPrefetch) {
    if (status.ok()) OnBad(now, peer, HandlePrefetch(*shards_, request));
    return;
  }
  if (status.ok()) {
    PullOutcome outcome = HandlePull(*shards_, request);
    if (outcome.status.ok() && !outcome.waits) {
      answers.push_back(
          Answer(asker, OkStatus(), std::move(outcome.refused), std::move(outcome.values)));
      return;
    }
    status = std::move(outcome.status);
  }
  if (status.ok()) status = Park(now, peer, std::move(request));
  if (status.ok()) return;
  OnBad(now, peer, status);
  answers.push_back(Answer(asker, std::move(status)));
}

size_t DataFrontend::Parked::bytes() const {
  return sizeof(Parked) + request.keys.size() + request.groups.size() * sizeof(KeyGroup);
}

// Busy if too many pulls wait already.
Status DataFrontend::Park(TimePoint now, const PeerId& peer, PullRequest request) {
  const bool again = std::ranges::any_of(parked_, [&](const auto& p) {
    return p.second.request.request == request.request && p.second.peer == peer;
  });
  if (again) return OkStatus();
  const Step step = request.step;
  const bool for_disk = shards_->MayPull(request.mode, step) != ShardClock::Pullable::kNotYet;
  Parked parked{peer, std::move(request), now + pull_timeout_};
  const auto of_peer = parked_of_.find(peer);
  const Load load = of_peer == parked_of_.end() ? Load() : of_peer->second;
  if (parked_.size() >= kParkedMax || parked_bytes_ + parked.bytes() > kParkedBytesMax ||
      load.pulls >= kParkedOfPeerMax || load.bytes + parked.bytes() > kParkedBytesOfPeerMax) {
    return Busy("{} pulls wait already, {} of this peer", parked_.size(), load.pulls);
  }
  parked_of_[peer] = {load.pulls + 1, load.bytes + parked.bytes()};
  parked_bytes_ += parked.bytes();
  if (for_disk) {
    wait_for_disk_.insert(next_id_);
  } else {
    wait_for_step_.emplace(step, next_id_);
  }
  parked_.emplace(next_id_++, std::move(parked));
  return OkStatus();
}

DataFrontend::ParkedById::iterator DataFrontend::Unpark(ParkedById::iterator parked) {
  const auto& [id, pull] = *parked;
  const auto of_peer = parked_of_.find(pull.peer);
  of_peer->second.bytes -= pull.bytes();
  if (--of_peer->second.pulls == 0) parked_of_.erase(of_peer);
  parked_bytes_ -= pull.bytes();
  wait_for_step_.erase({pull.request.step, id});
  wait_for_disk_.erase(id);
  return parked_.erase(parked);
}

bool DataFrontend::ServeOne(ParkedById::iterator parked, std::vector<PeerMessage>& answers) {
  const Parked& pull = parked->second;
  PullOutcome outcome = HandlePull(*shards_, pull.request);
  if (outcome.status.ok() && outcome.waits) return false;
  answers.push_back(Answer(pull.asker(), std::move(outcome.status), std::move(outcome.refused),
                           std::move(outcome.values)));
  Unpark(parked);
  return true;
}

void DataFrontend::ServeParked(std::vector<PeerMessage>& answers) {
  if (!may_answer()) return;
  shards_->Resume();
  served_at_ = shards_->progress();
  while (!wait_for_step_.empty()) {
    const auto [step, id] = *wait_for_step_.begin();
    if (shards_->MayPull(PullMode::kTrain, step) == ShardClock::Pullable::kNotYet) break;
    if (ServeOne(parked_.find(id), answers)) continue;
    wait_for_step_.erase(wait_for_step_.begin());
    wait_for_disk_.insert(id);
  }
  if (shards_->disk_progress() == disk_served_at_) return;
  disk_served_at_ = shards_->disk_progress();
  const std::vector<uint64_t> waiting(wait_for_disk_.begin(), wait_for_disk_.end());
  for (const uint64_t id : waiting) ServeOne(parked_.find(id), answers);
}

void DataFrontend::OnTick(TimePoint now, std::vector<PeerMessage>& answers) {
  ServeParked(answers);
  AnswerStable(answers);
  for (auto at = parked_.begin(); at != parked_.end() && now >= at->second.deadline;) {
    const PullRequest& request = at->second.request;
    const bool for_disk =
        shards_->MayPull(request.mode, request.step) != ShardClock::Pullable::kNotYet;
    const std::string why = for_disk ? "its rows are on disk" : shards_->SlowestText();
    const Status late = Timeout("pull of step {} waited {:.0f} s: {}", request.step,
                                std::chrono::duration<double>(pull_timeout_).count(), why);
    answers.push_back(Answer(at->second.asker(), late));
    at = Unpark(at);
  }
}

bool DataFrontend::may_answer() const {
  return shards_ != nullptr && !parked_.empty() && shards_->progress() != served_at_;
}

TimePoint DataFrontend::NextDeadline() const {
  return parked_.empty() ? TimePoint::max() : parked_.begin()->second.deadline;
}

// Counts malformed messages only: stale and early ones belong to the protocol.
void DataFrontend::OnBad(TimePoint now, const PeerId& peer, const Status& status) {
  if (status.code() != StatusCode::kOutOfRange) return;
  ++bad_messages_;
  if (now - logged_since_ >= kLogInterval) {
    logged_since_ = now;
    logged_.clear();
  }
  if (logged_.size() >= kLinesMax || !logged_.insert(peer).second) return;
  LogWarn("server.bad_message", {{"problem", MessageOf(status)}, {"bad_so_far", bad_messages_}});
}

}  // namespace dt::server
