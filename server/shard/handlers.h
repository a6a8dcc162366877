// What each request does to the shards. Functions without socket, clock or thread: tests and
// fuzzers call them as they are.
#pragma once

#include <optional>

#include "common/wire/data.h"
#include "server/shard/shard_set.h"

namespace dt::server {

// The values; nothing while steps before the pull's are not applied (of workers that run apart:
// those that the staleness asks for), or rows are on their way from the disk.
Result<std::optional<Frame>> HandlePull(ShardSet& shards, const PullRequest& request);
// The rows may come to memory.
Status HandleLookahead(ShardSet& shards, const PullRequest& request);
// OK once the contribution is held, or was before.
Status HandlePush(ShardSet& shards, PushRequest request);
Status HandleComplete(ShardSet& shards, const CompleteRequest& request);

}  // namespace dt::server
