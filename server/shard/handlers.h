// What each request does to the shards. Functions without socket, time or thread: tests and fuzzers
// call them as they are.
#pragma once

#include <vector>

#include "common/wire/data.h"
#include "server/shard/shard_set.h"

namespace dt::server {

// Nothing was done for shards that are refused: their chains have changed since the sender's map.
struct PullOutcome {
  Status status;
  // Steps before the pull's are not applied yet (of asynchronous workers: those that the
  // staleness asks for), or rows are on their way from the disk: to be called again.
  bool waits = false;
  Frame values = {};
  std::vector<ShardId> refused = {};
};
struct PushOutcome {
  Status status;  // OK once the contribution is held, or was before.
  std::vector<ShardId> refused = {};
};

PullOutcome HandlePull(ShardSet& shards, const PullRequest& request);
// The rows may come to memory.
Status HandleLookahead(ShardSet& shards, const PullRequest& request);
PushOutcome HandlePush(ShardSet& shards, PushRequest request);
Status HandleComplete(ShardSet& shards, const CompleteRequest& request);

}  // namespace dt::server
