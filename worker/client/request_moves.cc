// How requests follow shards that have moved.
#include <algorithm>
#include <map>

#include "worker/client/request_book.h"

namespace dt::worker {
namespace {

bool IsIn(const std::vector<ShardId>& shards, ShardId shard) {
  return std::ranges::binary_search(shards, shard);
}

}  // namespace

const Stamp& RequestBook::StampOf(const Request& request) {
  return request.kind == Kind::kPull ? request.pull.stamp : request.push.stamp;
}

RequestBook::Shards RequestBook::ShardsOf(const Request& request) {
  Shards shards;
  if (request.kind == Kind::kPush) {
    for (const ShardPiece& piece : request.push.pieces) shards.push_back(piece.shard);
    return shards;
  }
  for (const KeyGroup& group : request.pull.groups) {
    if (shards.empty() || shards.back() != group.shard) shards.push_back(group.shard);
  }
  return shards;
}

uint32_t RequestBook::RouteOf(const Request& request, ShardId shard) const {
  return request.kind == Kind::kPull ? routes_.for_pull()[shard.value()]
                                     : routes_.for_push()[shard.value()];
}

bool RequestBook::HasMoved(const Request& request) const {
  if (StampOf(request).map == routes_.map().version) return false;
  return std::ranges::any_of(ShardsOf(request), [&](ShardId shard) {
    return RouteOf(request, shard) != request.executor;
  });
}

// Replaces open requests that meet `condition` by new ones to where their shards are now.
void RequestBook::RegroupIf(TimePoint now, const std::function<bool(const Request&)>& condition) {
  const auto regrouped = std::ranges::stable_partition(
      requests_, [&](const Request& r) { return r.answered || !condition(r); });
  std::vector<Request> old(std::make_move_iterator(regrouped.begin()),
                           std::make_move_iterator(regrouped.end()));
  requests_.erase(regrouped.begin(), regrouped.end());
  for (const Request& request : old) Regroup(now, request, ShardsOf(request));
}

void RequestBook::Regroup(TimePoint now, const Request& request, const Shards& shards) {
  std::map<uint32_t, Shards> by_executor;
  for (const ShardId shard : shards) by_executor[RouteOf(request, shard)].push_back(shard);
  for (const auto& [executor, own] : by_executor) {
    Request part = Only(request, own);
    part.executor = executor;
    Begin(now, std::move(part));
  }
}

void RequestBook::OnMap(TimePoint now, const ShardMap& map) {
  if (!routes_.Take(map)) return;
  RegroupIf(now, [this](const Request& request) { return !routes_.InUse(request.executor); });
  std::set<std::string> asked;
  for (const Request& request : requests_) {
    if (!request.answered) asked.insert(routes_.executors()[request.executor].endpoint);
  }
  watch_.KeepOnly(asked);
}

// The part of a request that is for these shards.
RequestBook::Request RequestBook::Only(const Request& request, const Shards& shards) const {
  Request part{.kind = request.kind,
               .plan = request.plan,
               .begun = request.begun,
               .refusal = request.refusal,
               .retry_after = request.retry_after};
  const bool pull = request.kind == Kind::kPull;
  const KeyGroups& groups = pull ? request.pull.groups : request.push.groups;
  std::span<const Key> keys = (pull ? request.pull.keys : request.push.keys).as<Key>();
  std::span<const std::byte> gradients = request.push.gradients.bytes();
  std::vector<Key> own_keys;
  std::vector<std::byte> own_gradients;
  KeyGroups own_groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    const uint64_t bytes = pull ? 0 : wire_of_.at(groups[i].table).BytesOf(groups[i].rows);
    if (IsIn(shards, groups[i].shard)) {
      own_groups.push_back(groups[i]);
      own_keys.insert(own_keys.end(), keys.begin(), keys.begin() + groups[i].rows);
      own_gradients.insert(own_gradients.end(), gradients.begin(), gradients.begin() + bytes);
      if (pull) part.rows.push_back(request.rows[i]);
    }
    keys = keys.subspan(groups[i].rows);
    gradients = gradients.subspan(bytes);
  }
  const Frame frame = Frame::CopyOf(std::as_bytes(std::span(own_keys)));
  if (pull) {
    part.pull = {.step = request.pull.step, .mode = request.pull.mode};
    part.pull.groups = std::move(own_groups);
    part.pull.keys = frame;
    return part;
  }
  part.push = request.push;
  std::erase_if(part.push.pieces, [&](const ShardPiece& p) { return !IsIn(shards, p.shard); });
  part.push.groups = std::move(own_groups);
  part.push.keys = frame;
  part.push.gradients = Frame::CopyOf(own_gradients);
  return part;
}

// Sends a shard's part again, to where the shard is now, if it was refused or the answering server
// does not count for it; the rest stays in the request. If no newer map is known than when the
// request was sent, this happens after a pause, as if the server were busy.
void RequestBook::SendAgain(TimePoint now, const Shards& refused, Request& request) {
  Shards again;
  for (const ShardId shard : ShardsOf(request)) {
    if (IsIn(refused, shard) || !routes_.Holds(request.executor, shard)) again.push_back(shard);
  }
  if (again.empty()) return;
  const bool newer = StampOf(request).map < routes_.map().version;
  const TimePoint when = newer ? now : now + request.retry_after;
  request.retry_after = std::min<Duration>(2 * request.retry_after, kRetryMax);
  request.refusal = fmt::format("shard {} is elsewhere", again.front().value());
  Regroup(when, request, again);
  KeepOthers(refused, again, request);
}

// Removes the rows of shards that are asked for again from a pull. The answer has no values for
// refused shards.
void RequestBook::KeepOthers(const Shards& refused, const Shards& again, Request& request) const {
  PooledVector<RowGroup> rows;
  Frame values = Frame::Of(request.values.size());
  std::byte* to = values.bytes().data();
  const std::byte* from = std::as_const(request.values).bytes().data();
  for (const RowGroup& group : request.rows) {
    if (IsIn(refused, group.shard)) continue;
    const uint64_t bytes = options_.tables[group.table].BytesOf(group.rows);
    if (!IsIn(again, group.shard)) {
      rows.push_back(group);
      to = std::copy_n(from, bytes, to);
    }
    from += bytes;
  }
  request.rows = std::move(rows);
  request.values = std::move(values);
}

}  // namespace dt::worker
