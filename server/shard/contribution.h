// What pushes bring to a shard.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"

namespace dt::server {

// Rows of one table in one shard.
struct GroupView {
  uint32_t table = 0;
  std::span<const Key> keys;
  std::span<const std::byte> gradients;  // In the wire format of the table.
};

// One piece of the gradients of one slice for one shard. The spans live as long as `owner`.
struct Contribution {
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t piece = 0, pieces = 1;
  float lr_scale = 1;
  std::span<const GroupView> groups;
  std::shared_ptr<const void> owner;
  // Asynchronous training: who sends it, and the first step of its order.
  ProcessId worker = {};
  Step first_step = 0;
};
uint64_t BytesOf(const Contribution& contribution);  // Of keys and gradients.

// One push to a shard, by piece; nothing: not there yet.
using Contributions = std::vector<std::optional<Contribution>>;
// All of its pieces are there. REQUIRES: for a push of which nothing is there, empty.
bool IsWhole(const Contributions& push);
uint64_t BytesOf(const Contributions& push);
// Puts a piece in its place, if that is empty; false: it was there. Error, Malformed: it is cut
// otherwise than those before.
Result<bool> AddPiece(Contribution piece, Contributions& push);

}  // namespace dt::server
