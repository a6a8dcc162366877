// What each request does to the shards. The functions have no socket, time or thread, so tests and
// fuzzers call them directly.
#pragma once

#include <vector>

#include "common/wire/data.h"
#include "server/shard/shard_set.h"

namespace dt::server {

// Nothing was done for shards in `refused`: their chains have changed since the sender's map.
struct PullOutcome {
  Status status;
  // The pull must be handled again later: earlier steps are not applied yet (with asynchronous
  // workers, those that the staleness demands), or rows are being read from disk.
  bool waits = false;
  Frame values = {};
  std::vector<ShardId> refused = {};
};
struct PushOutcome {
  Status status;  // OK if the contribution is held now, or was before.
  std::vector<ShardId> refused = {};
};

PullOutcome HandlePull(ShardSet& shards, const PullRequest& request);
// Begins to read rows that are on disk: a prefetch.
Status HandlePrefetch(ShardSet& shards, const PullRequest& request);
PushOutcome HandlePush(ShardSet& shards, PushRequest request);
Status HandleComplete(ShardSet& shards, const CompleteRequest& request);

}  // namespace dt::server
