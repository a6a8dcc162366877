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

std::span<const std::byte> KeysOf(const Contribution& contribution) {
  if (contribution.groups.empty()) return {};
  const std::byte* const begin = std::as_bytes(contribution.groups.front().keys).data();
  size_t bytes = 0;
  for (const GroupView& group : contribution.groups) {
    const auto keys = std::as_bytes(group.keys);
    DT_CHECK(keys.data() == begin + bytes);
    bytes += keys.size();
  }
  return {begin, bytes};
}

std::span<const std::byte> GradientsOf(const Contribution& contribution) {
  if (contribution.groups.empty()) return {};
  const std::byte* const begin = contribution.groups.front().gradients.data();
  size_t bytes = 0;
  for (const GroupView& group : contribution.groups) {
    DT_CHECK(group.gradients.data() == begin + bytes);
    bytes += group.gradients.size();
  }
  return {begin, bytes};
}

bool IsWhole(const Contributions& push) {
  return !push.empty() && std::ranges::all_of(push, [](const auto& p) { return p.has_value(); });
}

uint64_t BytesOf(const Contributions& push) {
  uint64_t bytes = 0;
  for (const auto& piece : push) bytes += piece.has_value() ? BytesOf(*piece) : 0;
  return bytes;
}

bool Has(const Contributions& push, uint32_t piece) {
  return piece < push.size() && push[piece].has_value();
}

Status CheckPieces(const Contribution& piece, const Contributions& push) {
  if (push.empty() || push.size() == piece.pieces) return OkStatus();
  return Malformed("push of step {} slice {}: {} pieces now, {} before", piece.step, piece.slice,
                   piece.pieces, push.size());
}

Result<bool> AddPiece(Contribution piece, Contributions& push) {
  DT_CHECK(piece.piece < piece.pieces);
  DT_TRY_STATUS(CheckPieces(piece, push));
  if (push.empty()) push.resize(piece.pieces);
  std::optional<Contribution>& place = push[piece.piece];
  if (place.has_value()) return false;
  place = std::move(piece);
  return true;
}

void AppendPieces(const Contributions& push, std::vector<Contribution>& to) {
  for (const std::optional<Contribution>& piece : push) {
    if (piece.has_value()) to.push_back(*piece);
  }
}

}  // namespace dt::server
