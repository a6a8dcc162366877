#include "scheduler/shards/balance.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/base/check.h"

namespace dt::scheduler {
namespace {

class Balancer {
 public:
  Balancer(const ShardMap& map, const BalanceInput& input) : input_(input), next_(map) {
    next_.version = MapVersion(map.version.value() + 1);
    for (const BalanceInput::Server& server : input.servers) {
      if (server.away) away_.insert(server.place.server.id);
      if (!server.draining) places_[server.place.server.id] = &server.place;
    }
    want_ = std::min<size_t>(input.replicas, places_.size());
    for (const Chain& chain : next_.chains) {
      for (const ProcessId id : chain.members) ++load_[id];
      for (const ProcessId id : chain.syncing) {
        ++load_[id];
        ++copies_to_[id];
        ++copies_from_[chain.tail()];
      }
    }
  }

  std::optional<ShardMap> Next() {
    if (places_.empty()) return std::nullopt;
    for (Chain& chain : next_.chains) {
      Shorten(chain);
      Lengthen(chain);
    }
    if (!copying_) Even();
    if (!changed_) return std::nullopt;
    SetServers();
    return std::move(next_);
  }

 private:
  bool IsDraining(ProcessId id) const { return !places_.contains(id); }
  bool MayCopyTo(ProcessId id) { return !away_.contains(id) && copies_to_[id] < kCopiesPerServer; }
  bool MayCopyFrom(ProcessId id) {
    return !away_.contains(id) && copies_from_[id] < kCopiesPerServer;
  }
  size_t Staying(const Chain& chain) const {
    return std::ranges::count_if(chain.members, [&](ProcessId id) { return !IsDraining(id); });
  }

  // Removes the member that is of least use, if there are enough others.
  void Shorten(Chain& chain) {
    while (chain.syncing.empty() && chain.members.size() > want_ && Staying(chain) >= want_) {
      const auto least = std::ranges::max_element(
          chain.members, {}, [&](ProcessId id) { return std::pair(IsDraining(id), load_[id]); });
      if (!IsDraining(*least) && Staying(chain) == want_) return;
      --load_[*least];
      chain.members.erase(least);
      chain.since = next_.version;
      changed_ = true;
    }
  }

  void Lengthen(Chain& chain) {
    copying_ = copying_ || !chain.syncing.empty();
    if (!chain.syncing.empty() || Staying(chain) >= want_) return;
    copying_ = true;
    if (const ServerPlace* const to = BestFor(chain)) BeginCopy(chain, to->server.id);
  }

  // The server with the fewest shards, on a host of its own if there is one.
  const ServerPlace* BestFor(const Chain& chain) {
    const ServerPlace* best = nullptr;
    std::pair<bool, uint32_t> best_rank;
    for (const auto& [id, place] : places_) {
      if (chain.Has(id) || !MayCopyTo(id)) continue;
      const std::pair rank(IsHostTaken(chain, *place), load_[id]);
      if (best != nullptr && rank >= best_rank) continue;
      best = place;
      best_rank = rank;
    }
    return best;
  }
  bool IsHostTaken(const Chain& chain, const ServerPlace& place) const {
    return std::ranges::any_of(chain.members, [&](ProcessId member) {
      const auto at = places_.find(member);
      return at != places_.end() && at->second->host == place.host;
    });
  }

  void BeginCopy(Chain& chain, ProcessId to) {
    if (!MayCopyFrom(chain.tail())) return;
    chain.syncing = {to};
    chain.syncing_since = next_.version;
    ++load_[to];
    ++copies_to_[to];
    ++copies_from_[chain.tail()];
    changed_ = true;
  }

  // Moves shards from the servers that have the most to those that have the fewest. The longer
  // chains are shortened when the copies have caught up.
  void Even() {
    for (;;) {
      const auto by_load = [&](const auto& entry) { return load_[entry.first]; };
      const auto [least, most] = std::ranges::minmax_element(places_, {}, by_load);
      const ProcessId to = least->first, from = most->first;
      if (load_[from] < load_[to] + 2 || !MayCopyTo(to)) return;
      const auto chain = std::ranges::find_if(next_.chains, [&](const Chain& each) {
        return each.syncing.empty() && each.members.size() == want_ && each.Has(from) &&
               !each.Has(to) && MayCopyFrom(each.tail());
      });
      if (chain == next_.chains.end()) return;
      BeginCopy(*chain, to);
      --load_[from];
    }
  }

  void SetServers() {
    next_.servers.clear();
    for (const BalanceInput::Server& server : input_.servers) {
      if (HasShards(next_, server.place.server.id)) next_.servers.push_back(server.place.server);
    }
  }

  const BalanceInput& input_;
  ShardMap next_;
  std::map<ProcessId, const ServerPlace*> places_;  // Of servers that do not drain.
  std::set<ProcessId> away_;
  size_t want_ = 1;
  std::map<ProcessId, uint32_t> load_, copies_to_, copies_from_;
  bool copying_ = false, changed_ = false;
};

ShardMap NextOf(const ShardMap& map) {
  ShardMap next = map;
  next.version = MapVersion(map.version.value() + 1);
  return next;
}

}  // namespace

std::optional<ShardMap> NextMap(const ShardMap& map, const BalanceInput& input) {
  return Balancer(map, input).Next();
}

uint32_t CopiesLeft(ShardMap map, const BalanceInput& input) {
  uint32_t left = 0;
  for (bool more = true; more;) {
    std::set<ProcessId> tails;  // Each copies one shard after the other.
    for (Chain& chain : map.chains) {
      if (chain.syncing.empty() || !tails.insert(chain.tail()).second) continue;
      ++left;
      chain.members.push_back(chain.syncing.front());
      chain.syncing.clear();
    }
    std::optional<ShardMap> next = NextMap(map, input);
    more = next.has_value() || !tails.empty();
    if (next.has_value()) map = *std::move(next);
  }
  return left;
}

uint32_t ShortChains(const ShardMap& map, uint32_t replicas) {
  return static_cast<uint32_t>(std::ranges::count_if(
      map.chains, [&](const Chain& chain) { return chain.members.size() < replicas; }));
}

ShardMap WithMember(const ShardMap& map, ShardId shard) {
  ShardMap next = NextOf(map);
  Chain& chain = next.chains[shard.value()];
  DT_CHECK(!chain.syncing.empty());
  chain.members.push_back(chain.syncing.front());
  chain.syncing.clear();
  chain.since = next.version;
  return next;
}

}  // namespace dt::scheduler
