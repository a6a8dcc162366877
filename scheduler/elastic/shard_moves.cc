#include "scheduler/elastic/shard_moves.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/log.h"
#include "common/base/text.h"

namespace dt::scheduler {

void ShardMoves::OnCopied(const Member& from, const ShardCopiedMessage& copied) {
  if (copied.shard.value() >= job_.record.map.shards()) return;
  const Chain& chain = job_.record.map.chains[copied.shard.value()];
  if (chain.tail() != from.id || chain.copied_since() != copied.since) return;
  if (chain.IsSyncing(copied.to)) copied_[copied.shard] = copied;
}

void ShardMoves::Advance(TimePoint now) {
  const ShardMap before = job_.record.map;
  ShardMap map = before;
  for (const auto& [shard, copied] : std::exchange(copied_, {})) {
    if (copied.generation != job_.record.generation) continue;
    const Chain& chain = map.chains[shard.value()];
    if (chain.copied_since() == copied.since && chain.IsSyncing(copied.to))
      map = WithMember(map, shard);
  }
  if (std::optional<ShardMap> next = NextMap(map, InputFor(map))) map = *std::move(next);
  if (map.version == before.version) return;
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    const auto held = [&](const ShardMap& of) {
      return std::ranges::count_if(of.chains, [&](const Chain& c) { return c.Has(server->id); });
    };
    if (held(before) == held(map)) continue;
    job_.out.AddEvent(now, "shards_moved",
                      {{"server", int64_t{server->id.value()}},
                       {"shards", int64_t{held(map)}},
                       {"map", static_cast<int64_t>(map.version.value())}});
  }
  const uint32_t replicas = job_.options.job.cluster.replicas;
  if (ShortChains(before, replicas) > 0 && ShortChains(map, replicas) == 0) {
    job_.out.AddEvent(now, "chains_complete", {{"map", static_cast<int64_t>(map.version.value())}});
  }
  SetMap(job_, std::move(map));
}

BalanceInput ShardMoves::InputFor(const ShardMap& map) const {
  BalanceInput input{.replicas = job_.options.job.cluster.replicas, .servers = {}};
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    if (!server->ready && !HasShards(map, server->id)) continue;
    input.servers.push_back(
        {{{server->id, server->join.endpoints}, server->join.host},
         server->draining,
         !server->ready || job_.members.presence(server->id).away_since.has_value()});
  }
  return input;
}

void ShardMoves::OnReport(TimePoint now, const Member& from, const HeartbeatMessage& report) {
  if (from.role() == Role::kServer) rate_.OnReport(now, from.id, report.chains.copied_bytes);
}

uint32_t ShardMoves::CopiesLeft() const {
  const ShardMap& map = job_.record.map;
  return scheduler::CopiesLeft(map, InputFor(map));
}

Status ShardMoves::CheckMemory(const JoinMessage& join) const {
  std::set<std::string_view> stay;
  for (const TableConfig& table : job_.options.job.model.tables) {
    if (table.all_in_memory) stay.insert(table.name);
  }
  uint64_t bytes = 0, servers = 1;  // With this one.
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    servers += server->draining ? 0 : 1;
    for (const TableReport& table : job_.members.presence(server->id).report.tables) {
      if (stay.contains(table.name)) bytes += table.bytes;
    }
  }
  const uint64_t share = bytes * job_.options.job.cluster.replicas / servers;
  if (share <= join.memory_bytes) return OkStatus();
  return WithHint(Invalid("a server would hold about {} of rows that stay in memory; this one may "
                          "use {}",
                          BytesText(share), BytesText(join.memory_bytes)),
                  "raise its cluster.server.memory");
}

std::vector<ProcessId> ShardMoves::Drained() const {
  std::vector<ProcessId> drained;
  for (const Member* server : job_.members.OfRole(Role::kServer)) {
    if (!server->draining || HasShards(job_.record.map, server->id)) continue;
    if (job_.orders.OutTo(server->id).empty()) drained.push_back(server->id);
  }
  return drained;
}

Status ShardMoves::Drain(TimePoint now, ProcessId id) {
  const Member* const server = job_.members.Find(id);
  if (server == nullptr || server->role() != Role::kServer) {
    return WithHint(Invalid("the job has no server {}", id.value()),
                    "`dovetail status` shows its servers");
  }
  if (server->draining) return OkStatus();
  const std::vector<const Member*> servers = job_.members.OfRole(Role::kServer);
  const auto left = std::ranges::count_if(
      servers, [&](const Member* other) { return other->id != id && !other->draining; });
  const uint32_t replicas = job_.options.job.cluster.replicas;
  if (left < replicas) {
    return WithHint(Invalid("without server {} the job would have {} server{}; it needs {}",
                            id.value(), left, left == 1 ? "" : "s", replicas),
                    "start another server first");
  }
  job_.members.SetDraining(id);
  job_.out.AddEvent(now, "server_drains", {{"id", int64_t{id.value()}}});
  LogInfo("job.server_drains", {{"who", server->Name()}});
  return OkStatus();
}

}  // namespace dt::scheduler
