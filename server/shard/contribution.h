// What a push carries to one shard.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/wire/sender_turn.h"

namespace dt::server {

// Rows of one table in one shard.
struct GroupView {
  uint32_t table = 0;
  std::span<const Key> keys;
  std::span<const std::byte> gradients;  // In the table's wire format.
};

// One piece of the gradients of one slice for one shard. The spans live as long as `owner`. The
// keys of the groups lie one behind the other in memory, and so do the gradients.
struct Contribution {
  Step step = 0;
  SliceIndex slice = 0;
  uint32_t piece = 0, pieces = 1;
  float lr_scale = 1;
  std::span<const GroupView> groups;
  std::shared_ptr<const void> owner;
  SenderTurn turn = {};  // Set in asynchronous training.
};
uint64_t BytesOf(const Contribution& contribution);  // Bytes of keys and gradients.
// The keys, or gradients, of all groups.
std::span<const std::byte> KeysOf(const Contribution& contribution);
std::span<const std::byte> GradientsOf(const Contribution& contribution);

// One push to a shard, by piece; pieces without a value have not arrived.
using Contributions = std::vector<std::optional<Contribution>>;
// True if all pieces have arrived. REQUIRES: a push of which none has arrived is empty.
bool IsWhole(const Contributions& push);
uint64_t BytesOf(const Contributions& push);
// True if this piece has arrived.
bool Has(const Contributions& push, uint32_t piece);
// Malformed: the number of pieces differs from that of earlier ones.
Status CheckPieces(const Contribution& piece, const Contributions& push);
// Appends the pieces that have arrived.
void AppendPieces(const Contributions& push, std::vector<Contribution>& to);

// Stores a piece. Returns false if it was there already. Malformed: as CheckPieces.
Result<bool> AddPiece(Contribution piece, Contributions& push);

}  // namespace dt::server
