#include "server/chain/chain_links.h"

#include <algorithm>
#include <utility>

#include "server/chain/record_message.h"

namespace dt::server {
namespace {

// A record that is not acknowledged is sent again after kPauseMin, and after longer and longer
// pauses until kPauseMax.
constexpr Duration kPauseMin = milliseconds(300);
constexpr Duration kPauseMax = seconds(3);
// Limit for the messages of one call of TakeLetters.
constexpr uint64_t kBytesPerTurn = 16 << 20;

Duration Longer(Duration pause) { return std::min<Duration>(2 * pause, kPauseMax); }

}  // namespace

ChainLinks::Peer ChainLinks::PeerOf(const ShardMap& map, ProcessId server, ShardId shard) {
  const ServerInfo& info = *map.FindServer(server);
  return {server, info.endpoints[ShardMap::ExecutorOf(shard, info.endpoints.size())]};
}

uint64_t ChainLinks::BytesOf(const Kept& kept) {
  return sizeof(kept) + kept.bytes.head.size() + kept.bytes.keys.size() +
         kept.bytes.gradients.size();
}

// ------------------------------------------------------------ the map

void ChainLinks::SetMap(TimePoint now, const ShardSet& shards) {
  const ShardMap& map = shards.view().map;
  std::map<ShardId, Link> before = std::exchange(links_, {});
  for (const Shard& shard : shards.shards()) {
    const Chain& chain = map.chains[shard.id().value()];
    const auto own = std::ranges::find(chain.members, shards.self());
    if (chain.members.size() < 2 || own == chain.members.end()) continue;
    auto former = before.extract(shard.id());
    Link& link = links_[shard.id()];
    if (!former.empty()) link = std::move(former.mapped());
    if (link.since == chain.since) continue;
    link.since = chain.since;
    const bool head = own == chain.members.begin(), tail = own + 1 == chain.members.end();
    link.before = head ? std::nullopt : std::optional(PeerOf(map, *(own - 1), shard.id()));
    link.after = tail ? std::nullopt : std::optional(PeerOf(map, *(own + 1), shard.id()));
    link.sent = 0;
    link.pause = kPauseMin;
    link.send_again = now;
    link.waiting.clear();
    link.tell = true;
    if (tail) Forget(link, shard.position());
  }
  for (auto& [id, link] : before) Forget(link, ~Position{0});
  ++progress_;
}

void ChainLinks::Reset() {
  for (auto& [id, link] : links_) {
    Forget(link, ~Position{0});
    link.told = 0;
    link.waiting.clear();
    link.tell = true;
  }
  ++progress_;
}

// Forgets kept records.
void ChainLinks::Forget(Link& link, Position until) {
  while (!link.kept.empty() && link.kept.front().position <= until) {
    kept_bytes_ -= BytesOf(link.kept.front());
    link.kept.pop_front();
    if (link.sent > 0) --link.sent;
  }
}

// ------------------------------------------------------------ towards the tail

void ChainLinks::OnRecord(ShardId shard, const Record& record) {
  const auto at = links_.find(shard);
  if (at == links_.end() || !at->second.after.has_value()) return;
  Kept& kept = at->second.kept.emplace_back(Kept{record.position, Encode(shard, record)});
  kept_bytes_ += BytesOf(kept);
}

Status ChainLinks::OnRecords(RecordsRequest message, ShardSet& shards) {
  if (message.stamp.generation != shards.generation()) return OkStatus();
  if (message.stamp.server != shards.self()) return OkStatus();
  DT_TRY(std::vector<LinkRecord> records,
         RecordsIn(message, shards.tables(), shards.shards_of_job()));
  for (LinkRecord& each : records) {
    const ShardId id = each.record.shard;
    const auto at = links_.find(id);
    if (at == links_.end()) continue;
    Link& link = at->second;
    if (link.since != each.since || !link.before.has_value()) continue;
    if (link.before->server != message.from) continue;
    const Position next = shards.Find(id)->position() + link.waiting.size() + 1;
    if (each.record.record.position != next) {
      link.tell = true;  // It has come before, or one before it was lost.
      continue;
    }
    link.waiting.push_back(std::move(each.record.record));
    if (link.waiting.size() == 1) DT_TRY_STATUS(Follow(id, link, shards));
  }
  return OkStatus();
}

Status ChainLinks::Follow(ShardId shard, Link& link, ShardSet& shards) {
  while (!link.waiting.empty()) {
    Status followed = shards.Follow(shard, link.waiting.front());
    if (followed.code() == StatusCode::kResourceExhausted) return OkStatus();
    DT_TRY_STATUS(std::move(followed));
    link.waiting.pop_front();
  }
  return OkStatus();
}

Status ChainLinks::Resume(ShardSet& shards) {
  for (auto& [id, link] : links_) {
    if (!link.waiting.empty()) DT_TRY_STATUS(Follow(id, link, shards));
  }
  return OkStatus();
}

// ------------------------------------------------------------ towards the head

Status ChainLinks::OnAcks(const AcksRequest& message, ShardSet& shards) {
  if (message.stamp.generation != shards.generation()) return OkStatus();
  if (message.stamp.server != shards.self()) return OkStatus();
  for (const ChainAck& ack : message.acks) {
    const auto at = links_.find(ack.shard);
    if (at == links_.end()) continue;
    Link& link = at->second;
    if (link.since != ack.since || !link.after.has_value()) continue;
    if (link.after->server != message.from) continue;
    if (ack.position > shards.Find(ack.shard)->position()) {
      return Malformed("server {} acknowledges record {} of shard {}; {} is the last",
                       message.from.value(), ack.position, ack.shard.value(),
                       shards.Find(ack.shard)->position());
    }
    if (link.kept.empty() || ack.position < link.kept.front().position) continue;
    link.pause = kPauseMin;
    Forget(link, ack.position);
    ++progress_;
  }
  // A step that is no step of this job would never be reached, and do no harm.
  if (message.complete > shards.complete()) shards.Advance(message.complete);
  return OkStatus();
}

bool ChainLinks::IsStable(ShardId shard, Position position) const {
  const auto at = links_.find(shard);
  return at == links_.end() || at->second.kept.empty() ||
         position < at->second.kept.front().position;
}

Position ChainLinks::StableOf(const Link& link, const Shard& shard) {
  return link.kept.empty() ? shard.position() : link.kept.front().position - 1;
}

// ------------------------------------------------------------ letters

Stamp ChainLinks::StampFor(const ShardSet& shards, ProcessId server) const {
  return {shards.generation(), shards.view().number, shards.view().map.version, server};
}

void ChainLinks::TakeLetters(TimePoint now, const ShardSet& shards, std::vector<Letter>& letters) {
  if (links_.empty()) return;
  WriteAcks(now, shards, letters);
  WriteRecords(now, shards, letters);
}

void ChainLinks::WriteAcks(TimePoint now, const ShardSet& shards, std::vector<Letter>& letters) {
  std::map<std::string, AcksRequest> messages;
  for (auto& [id, link] : links_) {
    if (!link.before.has_value()) continue;
    const Shard& shard = *shards.Find(id);
    const auto message = [&]() -> AcksRequest& {
      AcksRequest& its = messages[link.before->endpoint];
      its.stamp = StampFor(shards, link.before->server);
      its.from = shards.self();
      return its;
    };
    const Position here = StableOf(link, shard);
    if (here > link.told || std::exchange(link.tell, false)) {
      link.told = here;
      message().acks.push_back({id, link.since, here});
    }
    // A request of a later step may have come here, while the head does not know that this one is
    // complete.
    if (shard.now() >= shards.complete() || !shard.clock().CanReach(shard.now() + 1)) continue;
    Told& told = told_[link.before->endpoint];
    if (told.complete >= shards.complete() && now < told.again) continue;
    message().complete = shards.complete();
  }
  for (auto& [endpoint, message] : messages) {
    if (message.complete != 0) told_[endpoint] = {message.complete, now + kPauseMin};
    letters.push_back({endpoint, Encode(message)});
  }
}

void ChainLinks::WriteRecords(TimePoint now, const ShardSet& shards, std::vector<Letter>& letters) {
  struct Writing {
    ProcessId server;
    RecordMessageWriter writer;
  };
  std::map<std::string, Writing> writings;
  uint64_t left = kBytesPerTurn;
  has_more_ = false;
  const auto finish = [&](const std::string& endpoint, Writing& writing) {
    const Stamp stamp = StampFor(shards, writing.server);
    letters.push_back({endpoint, writing.writer.Take(stamp, shards.self(), *frames_)});
  };
  for (auto& [id, link] : links_) {
    if (!link.after.has_value() || link.kept.empty()) continue;
    if (link.sent == link.kept.size() && now >= link.send_again) {
      link.sent = 0;
      link.pause = Longer(link.pause);
    }
    if (link.sent < link.kept.size()) link.send_again = now + link.pause;
    Writing& writing = writings[link.after->endpoint];
    writing.server = link.after->server;
    for (; link.sent < link.kept.size() && left > 0; ++link.sent) {
      const Kept& kept = link.kept[link.sent];
      writing.writer.Add(link.since, kept.bytes);
      left -= std::min(left, BytesOf(kept));
      if (writing.writer.full()) finish(link.after->endpoint, writing);
    }
    has_more_ = has_more_ || link.sent < link.kept.size();
  }
  for (auto& [endpoint, writing] : writings) {
    if (!writing.writer.empty()) finish(endpoint, writing);
  }
}

}  // namespace dt::server
