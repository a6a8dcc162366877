#include "server/shard/handlers.h"

#include <algorithm>

namespace dt::server {
namespace {

// The shards of a request, ascending.
PooledVector<ShardId> ShardsIn(const KeyGroups& groups) {
  PooledVector<ShardId> shards;
  for (const KeyGroup& group : groups) {
    if (shards.empty() || shards.back() != group.shard) shards.push_back(group.shard);
  }
  return shards;
}

// The part of a pull that is not refused. If nothing is refused, `groups` and `keys` stay empty:
// the request has them.
struct Asked {
  std::vector<ShardId> refused;
  KeyGroups groups;
  std::vector<Key> keys;
};
Result<Asked> AskedOf(const ShardSet& shards, const PullRequest& request) {
  DT_TRY_STATUS(shards.CheckStamp(request.stamp));
  std::span<const Key> keys = request.keys.as<Key>();
  DT_TRY_STATUS(shards.CheckKeys(request.groups, keys));
  Asked asked;
  DT_TRY(asked.refused, shards.Refused(request.stamp, ShardsIn(request.groups)));
  if (asked.refused.empty()) return asked;
  for (const KeyGroup& group : request.groups) {
    if (!std::ranges::binary_search(asked.refused, group.shard)) {
      asked.groups.push_back(group);
      asked.keys.insert(asked.keys.end(), keys.begin(), keys.begin() + group.rows);
    }
    keys = keys.subspan(group.rows);
  }
  return asked;
}

Result<PullOutcome> Pull(ShardSet& shards, const PullRequest& request) {
  using Pullable = ShardClock::Pullable;
  DT_TRY(Asked asked, AskedOf(shards, request));
  const bool all = asked.refused.empty();
  const KeyGroups& groups = all ? request.groups : asked.groups;
  const std::span<const Key> keys = all ? request.keys.as<Key>() : asked.keys;
  PullOutcome outcome{.refused = std::move(asked.refused)};
  if (groups.empty() && !all) return outcome;
  DT_TRY_STATUS(shards.CheckStep(request.step));
  // A pull for step t shows that its worker has passed the barrier of t - 1, so that all earlier
  // steps are complete.
  shards.Advance(request.step);
  DT_TRY_STATUS(shards.CheckNothingLost(request.step));
  const Pullable pullable = shards.MayPull(request.mode, request.step);
  if (pullable == Pullable::kTooLate) {
    return Stale("pull of step {}, but step {} is next: the rows have changed", request.step,
                 shards.clock());
  }
  outcome.waits = pullable == Pullable::kNotYet || !shards.EnsureInMemory(groups, keys);
  if (!outcome.waits) outcome.values = shards.Gather(request.mode, groups, keys);
  return outcome;
}

Result<PushOutcome> Push(ShardSet& shards, PushRequest request) {
  DT_TRY_STATUS(shards.CheckStamp(request.stamp));
  DT_TRY_STATUS(shards.CheckKeys(request.groups, request.keys.as<Key>()));
  DT_TRY_STATUS(shards.CheckSlices(request.slices));
  PooledVector<ShardId> named;
  for (const ShardPiece& piece : request.pieces) named.push_back(piece.shard);
  DT_TRY(std::vector<ShardId> refused, shards.Refused(request.stamp, named));
  DT_TRY_STATUS(shards.CheckHeads(named, refused));
  Status status = shards.Push(std::move(request), refused);
  return PushOutcome{std::move(status), std::move(refused)};
}

}  // namespace

PullOutcome HandlePull(ShardSet& shards, const PullRequest& request) {
  Result<PullOutcome> outcome = Pull(shards, request);
  return outcome.ok() ? *std::move(outcome) : PullOutcome{.status = outcome.status()};
}

Status HandlePrefetch(ShardSet& shards, const PullRequest& request) {
  DT_TRY(const Asked asked, AskedOf(shards, request));
  if (asked.refused.empty()) {
    shards.EnsureInMemory(request.groups, request.keys.as<Key>());
  }
  return OkStatus();
}

PushOutcome HandlePush(ShardSet& shards, PushRequest request) {
  Result<PushOutcome> outcome = Push(shards, std::move(request));
  return outcome.ok() ? *std::move(outcome) : PushOutcome{.status = outcome.status()};
}

Status HandleComplete(ShardSet& shards, const CompleteRequest& request) {
  DT_TRY_STATUS(shards.CheckStamp(request.stamp));
  DT_TRY_STATUS(shards.CheckStep(request.step));
  shards.Advance(request.step + 1);
  return OkStatus();
}

}  // namespace dt::server
