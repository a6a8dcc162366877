#include "server/shard/handlers.h"

namespace dt::server {

Result<std::optional<Frame>> HandlePull(ShardSet& shards, const PullRequest& request) {
  DT_TRY_STATUS(shards.CheckStamp(request.stamp));
  const std::span<const Key> keys = request.keys.as<Key>();
  DT_TRY_STATUS(shards.CheckGroups(request.groups, keys));
  if (!shards.asynchronous()) {
    DT_TRY_STATUS(shards.CheckStep(request.step));
    // A pull for step t shows that the worker has passed the barrier of t - 1, so that all earlier
    // steps are complete.
    shards.Advance(request.step);
    DT_TRY_STATUS(shards.CheckNothingLost(request.step));
  }
  if (!shards.MayPull(request.mode, request.step)) return std::optional<Frame>();
  if (!shards.asynchronous() && request.mode == PullMode::kTrain && shards.clock() > request.step) {
    return Stale("pull of step {}, but step {} is next: the rows have changed", request.step,
                 shards.clock());
  }
  if (!shards.EnsureInMemory(request.groups, keys)) return std::optional<Frame>();
  return std::optional(shards.Gather(request.mode, request.groups, keys));
}

Status HandleLookahead(ShardSet& shards, const PullRequest& request) {
  DT_TRY_STATUS(shards.CheckStamp(request.stamp));
  const std::span<const Key> keys = request.keys.as<Key>();
  DT_TRY_STATUS(shards.CheckGroups(request.groups, keys));
  shards.EnsureInMemory(request.groups, keys);
  return OkStatus();
}

Status HandlePush(ShardSet& shards, PushRequest request) {
  DT_TRY_STATUS(shards.CheckStamp(request.stamp));
  return shards.Push(std::move(request));
}

Status HandleComplete(ShardSet& shards, const CompleteRequest& request) {
  DT_TRY_STATUS(shards.CheckStamp(request.stamp));
  DT_TRY_STATUS(shards.CheckStep(request.step));
  shards.Advance(request.step + 1);
  return OkStatus();
}

}  // namespace dt::server
