#include "server/chain/chain_links.h"

#include <algorithm>
#include <set>
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
  std::map<ShardId, Link> former = std::exchange(links_, {});
  for (const Shard& shard : shards.shards()) {
    const ShardId id = shard.id();
    const Chain& chain = map.chains[id.value()];
    const auto was = former.extract(id);
    std::optional<Peer> before, after;
    const auto own = std::ranges::find(chain.members, shards.self());
    if (own == chain.members.end()) {
      // Its rows are being copied to here, and the tail may already send records.
      const Peer tail = PeerOf(map, chain.tail(), id);
      const bool follows = !was.empty() && was.mapped().before == tail;
      if (!follows || was.mapped().copied_since != chain.copied_since()) continue;
      before = tail;
    } else {
      if (own != chain.members.begin()) before = PeerOf(map, *(own - 1), id);
      if (own + 1 != chain.members.end()) {
        after = PeerOf(map, *(own + 1), id);
      } else if (!chain.syncing.empty() && !was.empty()) {
        const Peer next = PeerOf(map, chain.syncing.front(), id);
        const bool same_copy = was.mapped().copied_since == chain.copied_since();
        if (was.mapped().after == next && same_copy) after = next;
      }
    }
    if (!before.has_value() && !after.has_value()) continue;
    Link& link = links_[id];
    if (!was.empty()) {
      link = std::move(was.mapped());
      was.mapped().kept.clear();
    }
    SetUp(now, shard, {chain.since, before, after}, link);
  }
  kept_bytes_ = 0;
  std::set<std::string> asked;
  for (const auto& [id, link] : links_) {
    for (const Kept& kept : link.kept) kept_bytes_ += BytesOf(kept);
    if (!link.kept.empty()) asked.insert(link.after->endpoint);
  }
  watch_.KeepOnly(asked);
  ++progress_;
}

void ChainLinks::SetUp(TimePoint now, const Shard& shard, Neighbours next, Link& link) {
  if (link.since == next.since && link.before == next.before && link.after == next.after) return;
  if (link.after != next.after || link.since != next.since) link.held_back = false;
  link.since = next.since;
  link.before = std::move(next.before);
  link.after = std::move(next.after);
  link.sent = 0;
  link.pause = kPauseMin;
  link.send_again = now;
  link.waiting.clear();
  link.tell = true;
  if (!link.after.has_value()) Forget(link, shard.position());
}

void ChainLinks::Reset(TimePoint now, const ShardSet& shards) {
  links_.clear();
  SetMap(now, shards);
}

void ChainLinks::BeginFollowing(const ShardSet& shards, ShardId shard, ProcessId to) {
  const ShardMap& map = shards.view().map;
  Link& link = links_[shard];
  link.since = map.chains[shard.value()].since;
  link.copied_since = map.chains[shard.value()].copied_since();
  link.after = PeerOf(map, to, shard);
  link.held_back = true;
  link.sent = 0;
  link.pause = kPauseMin;
}

void ChainLinks::Release(TimePoint now, ShardId shard) {
  const auto at = links_.find(shard);
  if (at == links_.end() || !std::exchange(at->second.held_back, false)) return;
  at->second.send_again = now;
}

void ChainLinks::FollowTail(const ShardSet& shards, ShardId shard) {
  const Chain& chain = shards.view().map.chains[shard.value()];
  Link& link = links_[shard];
  link.since = chain.since;
  link.copied_since = chain.copied_since();
  link.before = PeerOf(shards.view().map, chain.tail(), shard);
  link.told = 0;
  link.tell = true;
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
    link.tell = true;
    const Position next = shards.Find(id)->position() + link.waiting.size() + 1;
    // It has come before, or one before it was lost.
    if (each.record.record.position != next) continue;
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

Status ChainLinks::OnAcks(TimePoint now, const AcksRequest& message, ShardSet& shards) {
  if (message.stamp.generation != shards.generation()) return OkStatus();
  if (message.stamp.server != shards.self()) return OkStatus();
  for (const ChainAck& ack : message.acks) {
    const auto at = links_.find(ack.shard);
    if (at == links_.end()) continue;
    Link& link = at->second;
    if (link.since != ack.since || !link.after.has_value()) continue;
    if (link.after->server != message.from) continue;
    watch_.OnAnswer(link.after->endpoint);
    if (ack.position > shards.Find(ack.shard)->position()) {
      return Malformed("server {} acknowledges record {} of shard {}; {} is the last",
                       message.from.value(), ack.position, ack.shard.value(),
                       shards.Find(ack.shard)->position());
    }
    if (link.kept.empty() || ack.position < link.kept.front().position) continue;
    link.pause = kPauseMin;
    link.send_again = now + kPauseMin;
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
  watch_.Pass(now);
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
    RecordsRequest message = writing.writer.Take(*frames_);
    message.stamp = StampFor(shards, writing.server);
    message.from = shards.self();
    letters.push_back({endpoint, Encode(message)});
  };
  for (auto& [id, link] : links_) {
    if (!link.after.has_value() || link.kept.empty() || link.held_back) continue;
    if (link.sent == link.kept.size() && now >= link.send_again) {
      link.sent = 0;
      link.pause = Longer(link.pause);
    }
    // Records that come later do not put it off.
    if (link.sent == 0) link.send_again = now + link.pause;
    Writing& writing = writings[link.after->endpoint];
    writing.server = link.after->server;
    if (link.sent < link.kept.size()) {
      watch_.OnAsked(link.after->server, link.after->endpoint);
    }
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
