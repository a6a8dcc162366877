#include "server/shard/contribution.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::server {

uint64_t BytesOf(const Contribution& contribution) {
  uint64_t bytes = 0;
  for (const GroupView& group : contribution.groups) {
    bytes += group.keys.size_bytes() + group.gradients.size_bytes();
  }
  return bytes;
}

bool IsWhole(const Contributions& push) {
  return !push.empty() && std::ranges::all_of(push, [](const auto& p) { return p.has_value(); });
}

uint64_t BytesOf(const Contributions& push) {
  uint64_t bytes = 0;
  for (const auto& piece : push) bytes += piece.has_value() ? BytesOf(*piece) : 0;
  return bytes;
}

Result<bool> AddPiece(Contribution piece, Contributions& push) {
  DT_CHECK(piece.piece < piece.pieces);
  if (push.empty()) push.resize(piece.pieces);
  if (push.size() != piece.pieces) {
    return Malformed("push of step {} slice {}: {} pieces now, {} before", piece.step, piece.slice,
                     piece.pieces, push.size());
  }
  std::optional<Contribution>& place = push[piece.piece];
  if (place.has_value()) return false;
  place = std::move(piece);
  return true;
}

}  // namespace dt::server
