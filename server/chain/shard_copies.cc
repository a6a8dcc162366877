#include "server/chain/shard_copies.h"

#include <algorithm>
#include <utility>

#include "common/base/hash.h"
#include "server/chain/copy_rows.h"
#include "server/chain/record_message.h"

namespace dt::server {
namespace {

constexpr size_t kPartsAhead = 4;
constexpr Duration kSendAgain = milliseconds(500);
constexpr Duration kTellAgain = milliseconds(500);
constexpr Duration kNextTurn = milliseconds(5);  // While a part waits for the disk.
constexpr size_t kHeadBytes = 256;               // Of a message, about.

Stamp StampFor(const ShardSet& shards, ProcessId server) {
  return {shards.generation(), shards.view().number, shards.view().map.version, server};
}

uint64_t BytesOf(const CopyRequest& part) { return part.rows.size() + kHeadBytes; }

bool IsFor(const Stamp& stamp, const ShardSet& shards) {
  return stamp.generation == shards.generation() && stamp.server == shards.self();
}

}  // namespace

void ShardCopies::Reset() {
  outgoing_.clear();
  incoming_.clear();
  dropped_.clear();
  copied_.clear();
}

// ------------------------------------------------------------ the map

void ShardCopies::FollowMap(ShardSet& shards, DiskTier& tier) {
  const ShardMap& map = shards.view().map;
  const auto chain_of = [&](ShardId id) -> const Chain& { return map.chains[id.value()]; };
  std::erase_if(outgoing_, [&](const auto& entry) {
    const auto& [id, out] = entry;
    const Chain& chain = chain_of(id);
    return shards.Find(id) == nullptr || chain.tail() != shards.self() ||
           chain.copied_since() != out.since || !chain.IsSyncing(out.to);
  });
  std::erase_if(incoming_, [&](const auto& entry) {
    return shards.Find(entry.first) == nullptr || !chain_of(entry.first).IsSyncing(shards.self());
  });
  // One after the other: the next one begins when all before it have caught up.
  if (std::ranges::any_of(outgoing_, [](const auto& out) { return !out.second.done; })) return;
  for (const Shard& shard : shards.shards()) {
    const Chain& chain = chain_of(shard.id());
    if (chain.tail() != shards.self() || chain.syncing.empty()) continue;
    if (outgoing_.contains(shard.id())) continue;
    const ServerInfo& to = *map.FindServer(chain.syncing.front());
    Outgoing& out = outgoing_[shard.id()];
    out.to = to.id;
    out.endpoint = to.endpoints[ShardMap::ExecutorOf(shard.id(), to.endpoints.size())];
    out.since = chain.copied_since();
    out.session =
        MixBits(uint64_t{shards.self().value()} << 40 ^ map.version.value()) + ++sessions_;
    out.reader = std::make_unique<ShardCopy>(shard.id(), shards, tier);
    return;
  }
}

// ------------------------------------------------------------ from here

Status ShardCopies::MakeParts(TimePoint now, ShardId id, Outgoing& out, ShardSet& shards,
                              ChainLinks& links) {
  while (out.reader != nullptr && out.parts.size() < kPartsAhead) {
    const bool at_once = out.reader->behind();
    if (now < may_send_ && !at_once) break;
    DT_TRY(std::optional<CopyRequest> part, out.reader->NextPart());
    if (!part.has_value()) {
      next_work_ = std::min(next_work_, now + kNextTurn);
      return OkStatus();
    }
    out.rows = out.reader->rows();
    part->stamp = StampFor(shards, out.to);
    part->from = shards.self();
    part->shard = id;
    part->since = out.since;
    part->session = out.session;
    part->number = out.acknowledged + out.parts.size();
    if (bytes_per_second_ != 0 && !at_once) {
      const double seconds =
          static_cast<double>(BytesOf(*part)) / static_cast<double>(bytes_per_second_);
      may_send_ = std::max(may_send_, now - kSendAgain) +
                  std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
    }
    if (part->end) {
      out.reader.reset();
      links.BeginFollowing(shards, id, out.to);
    }
    out.parts.push_back(*std::move(part));
  }
  if (out.reader != nullptr && out.parts.size() < kPartsAhead) {
    next_work_ = std::min(next_work_, may_send_);
  }
  return OkStatus();
}

void ShardCopies::Send(TimePoint now, ShardId id, Outgoing& out, Generation generation,
                       std::vector<ChainLinks::Letter>& letters) {
  if (out.sent != 0 && now >= out.send_again) out.sent = 0;
  if (out.sent < out.parts.size()) out.send_again = now + kSendAgain;
  for (; out.sent < out.parts.size(); ++out.sent) {
    letters.push_back({out.endpoint, Encode(out.parts[out.sent])});
  }
  if (!out.parts.empty()) next_work_ = std::min(next_work_, out.send_again);
  if (!out.done) return;
  if (now >= out.tell_again) {
    copied_.push_back({id, out.to, out.since, generation});
    out.tell_again = now + kTellAgain;
  }
  next_work_ = std::min(next_work_, out.tell_again);
}

void ShardCopies::OnCopyAck(TimePoint now, const CopyAckRequest& message, const ShardSet& shards,
                            ChainLinks& links) {
  const auto at = outgoing_.find(message.shard);
  if (at == outgoing_.end() || !IsFor(message.stamp, shards)) return;
  Outgoing& out = at->second;
  if (out.session != message.session || out.to != message.from) return;
  while (!out.parts.empty() && out.acknowledged < message.next) {
    out.bytes += BytesOf(out.parts.front());
    copied_bytes_ += BytesOf(out.parts.front());
    out.parts.pop_front();
    ++out.acknowledged;
    if (out.sent > 0) --out.sent;
    out.send_again = now + kSendAgain;
  }
  if (out.reader != nullptr || !out.parts.empty() || out.done) return;
  out.done = true;
  links.Release(now, message.shard);
}

void ShardCopies::AddTo(ChainReport& report, const ShardSet& shards) const {
  report.copied_bytes += copied_bytes_;
  for (const auto& [id, out] : outgoing_) {
    const Shard* const shard = shards.Find(id);
    if (shard == nullptr) continue;
    CopyReport& copy = report.copies.emplace_back(
        CopyReport{.shard = id, .to = out.to, .bytes = out.bytes, .rows = out.rows});
    for (uint32_t t = 0; t < shard->tables(); ++t) {
      const EmbeddingTable& table = shard->table(t);
      copy.rows_of_shard += table.rows() + table.tier_counts().below;
    }
  }
}

// ------------------------------------------------------------ to here

void ShardCopies::Drop(ShardId shard) {
  incoming_.erase(shard);
  dropped_.insert(shard);
}

Status ShardCopies::OnCopy(CopyRequest message, ShardSet& shards) {
  if (!IsFor(message.stamp, shards) || message.shard.value() >= shards.shards_of_job()) {
    return OkStatus();
  }
  const Shard* const shard = shards.Find(message.shard);
  const Chain& chain = shards.view().map.chains[message.shard.value()];
  if (shard == nullptr || !shard->place().syncing || chain.copied_since() != message.since ||
      chain.tail() != message.from || dropped_.contains(message.shard)) {
    return OkStatus();
  }
  Incoming& in = incoming_[message.shard];
  if (in.session != message.session || in.from != message.from) {
    if (in.next != 0) {
      Drop(message.shard);
      return OkStatus();
    }
    in = {.from = message.from, .session = message.session};
  }
  if (message.number != in.next + in.waiting.size() || in.waiting.size() == kPartsAhead) {
    in.tell = true;
    return OkStatus();
  }
  in.waiting.push_back(std::move(message));
  return OkStatus();
}

Result<bool> ShardCopies::Take(ShardId id, Incoming& in, ShardSet& shards, DiskTier& tier,
                               ChainLinks& links) {
  CopyRequest& part = in.waiting.front();
  DT_TRY(const bool taken, Apply(part, shards, tier));
  if (!taken) return false;
  if (on_part_ != nullptr) on_part_(part);
  if (part.end) {
    links.FollowTail(shards, id);
    in.done = true;
  }
  ++in.next;
  in.tell = true;
  in.waiting.pop_front();
  return true;
}

Result<bool> ShardCopies::Apply(CopyRequest& part, ShardSet& shards, DiskTier& tier) {
  const ShardId id = part.shard;
  Shard& shard = *shards.Find(id);
  DT_TRY(const std::vector<CopiedRow> rows, RowsIn(std::as_const(part.rows).bytes()));
  std::vector<std::vector<Key>> keys(shard.tables());
  for (const CopiedRow& row : rows) {
    if (row.table >= shard.tables()) return Malformed("copied rows: table {}", row.table);
    const EmbeddingTable& table = shard.table(row.table);
    if (ShardOf(table.spec().id, row.key, shards.shards_of_job()) != id) {
      return Malformed("copied rows: a key of another shard than {}", id.value());
    }
    keys[row.table].push_back(row.key);
  }
  std::vector<EmbeddingTable::KeyRun> runs;
  for (uint32_t t = 0; t < keys.size(); ++t) {
    if (!keys[t].empty()) runs.push_back({&shard.table(t), keys[t]});
  }
  if (!runs.empty() && !tier.EnsureWritable(runs)) return false;
  for (const CopiedRow& row : rows) {
    DT_TRY_STATUS(shard.table(row.table).Replace(row.key, row.record));
  }
  if (part.end) DT_TRY_STATUS(TakeEnd(part, shards));
  return true;
}

Status ShardCopies::TakeEnd(const CopyRequest& last, ShardSet& shards) {
  const ShardId id = last.shard;
  Shard& shard = *shards.Find(id);
  std::string_view lives(reinterpret_cast<const char*>(last.lives.bytes().data()),
                         last.lives.size());
  if (last.life_bytes.size() != shard.tables()) return Malformed("a copied shard: its tables");
  for (uint32_t t = 0; t < shard.tables(); ++t) {
    if (last.life_bytes[t] > lives.size()) return Malformed("a copied shard: its states");
    if (last.life_bytes[t] == 0) continue;
    DT_TRY_STATUS(
        shards.RestoreLife(id, shard.table(t).spec().id, lives.substr(0, last.life_bytes[t]))
            .status());
    lives.remove_prefix(last.life_bytes[t]);
  }
  const RecordsRequest held{
      .parts = last.held, .heads = last.heads, .keys = last.keys, .gradients = last.gradients};
  DT_TRY(std::vector<LinkRecord> records, RecordsIn(held, shards.tables(), shards.shards_of_job()));
  ClockState clock{.now = last.now,
                   .view = last.view,
                   .turns = last.turns,
                   .settled = last.settled,
                   .applied = last.applied};
  for (LinkRecord& each : records) clock.held.push_back(std::move(each.record.record.contribution));
  return shard.Become(clock, last.position);
}

// ------------------------------------------------------------ turns

Status ShardCopies::Work(TimePoint now, ShardSet& shards, DiskTier& tier, ChainLinks& links,
                         std::vector<ChainLinks::Letter>& letters) {
  next_work_ = TimePoint::max();
  FollowMap(shards, tier);
  for (auto& [id, out] : outgoing_) {
    DT_TRY_STATUS(MakeParts(now, id, out, shards, links));
    Send(now, id, out, shards.generation(), letters);
  }
  Status bad;
  for (auto& [id, in] : incoming_) {
    if (!in.waiting.empty()) {
      const Result<bool> taken = Take(id, in, shards, tier, links);
      if (!taken.ok()) {
        bad.Update(taken.status());
        in.waiting.clear();
      } else if (!in.waiting.empty()) {
        next_work_ = std::min(next_work_, *taken ? now : now + kNextTurn);
      }
    }
    if (!std::exchange(in.tell, false)) continue;
    const Chain& chain = shards.view().map.chains[id.value()];
    const ServerInfo& from = *shards.view().map.FindServer(chain.tail());
    if (from.id != in.from) continue;
    letters.push_back({from.endpoints[ShardMap::ExecutorOf(id, from.endpoints.size())],
                       Encode(CopyAckRequest{.stamp = StampFor(shards, in.from),
                                             .from = shards.self(),
                                             .shard = id,
                                             .since = chain.copied_since(),
                                             .session = in.session,
                                             .next = in.next})});
  }
  return bad;
}

}  // namespace dt::server
