#include "worker/collective/collective.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

constexpr uint32_t kOfMembers = 2;  // The group in tags; calls of all ranks have 0.

std::span<const float> Piece(std::span<const float> all, size_t begin, size_t end) {
  return all.subspan(begin, end - begin);
}

}  // namespace

void Collective::FindMembers(const SliceExchange& exchange) {
  members_.assign(exchange.ranks.begin(), exchange.ranks.end());
  for (uint32_t r = 0; exchange.ranks.empty() && r < size(); ++r) members_.push_back(r);
  const auto own = std::ranges::find(members_, rank());
  DT_CHECK(own != members_.end());
  own_member_ = static_cast<size_t>(own - members_.begin());
}

// The ranges that a member sums: one of all floats, cut at cache lines of 16, or its rows of every
// matrix.
std::span<const Collective::Range> Collective::RangesOf(const SliceExchange& exchange,
                                                        size_t member) {
  const size_t members = members_.size();
  ranges_.clear();
  for (const RowsPiece& piece : exchange.rows) {
    const size_t each = (piece.rows + members - 1) / members;
    const size_t begin = std::min(piece.rows, member * each);
    const size_t end = std::min(piece.rows, begin + each);
    ranges_.push_back({piece.offset + begin * piece.width, piece.offset + end * piece.width});
  }
  if (!exchange.rows.empty()) return ranges_;
  const size_t elements = exchange.summed.size(), blocks = (elements + 15) / 16;
  const auto cut = [&](size_t m) { return std::min(elements, 16 * (blocks * m / members)); };
  ranges_.push_back({cut(member), cut(member + 1)});
  return ranges_;
}

Status Collective::ExchangeSlices(const SliceExchange& exchange) {
  const size_t slices = exchange.owner.size();
  DT_CHECK(slices > 0 && exchange.sum.size() == slices && exchange.gather.size() == slices);
  DT_CHECK(exchange.gathered.size() % slices == 0);
  FindMembers(exchange);
  if (members_.size() > 1) DT_TRY_STATUS(SendSlices(exchange));
  const size_t each = exchange.gathered.size() / slices;
  for (size_t k = 0; k < slices; ++k) {
    if (exchange.owner[k] != rank()) continue;
    DT_CHECK(exchange.gather[k].size() == each);
    std::ranges::copy(exchange.gather[k], exchange.gathered.begin() + k * each);
  }
  SumOwnRanges(exchange);
  return members_.size() > 1 && exchange.rows.empty() ? ShareRanges(exchange) : OkStatus();
}

// Sends to each member its ranges of every own slice's `sum`, and all of the slice's `gather`.
Status Collective::SendSlices(const SliceExchange& exchange) {
  const size_t slices = exchange.owner.size();
  const size_t each = exchange.gathered.size() / slices;
  size_t length = 0;
  for (const Range& range : RangesOf(exchange, own_member_)) length += range.end - range.begin;
  received_.resize(slices * length);
  send_.clear();
  receive_.clear();
  for (size_t k = 0; k < slices; ++k) {
    const uint32_t owner = exchange.owner[k];
    DT_CHECK(owner < size());
    if (owner == rank()) continue;
    float* at = received_.data() + k * length;
    for (const Range& range : RangesOf(exchange, own_member_)) {
      const size_t count = range.end - range.begin;
      receive_.push_back({owner, std::as_writable_bytes(std::span(at, count))});
      at += count;
    }
    receive_.push_back({owner, std::as_writable_bytes(exchange.gathered.subspan(k * each, each))});
  }
  for (size_t m = 0; m < members_.size(); ++m) {
    if (m != own_member_) SendOwnSlices(exchange, m);
  }
  return ExchangeOf(exchange, 0, "sum over slices");
}

void Collective::SendOwnSlices(const SliceExchange& exchange, size_t member) {
  for (size_t k = 0; k < exchange.owner.size(); ++k) {
    if (exchange.owner[k] != rank()) continue;
    DT_CHECK(exchange.sum[k].size() == exchange.summed.size());
    for (const Range& range : RangesOf(exchange, member)) {
      send_.push_back(
          {members_[member], std::as_bytes(Piece(exchange.sum[k], range.begin, range.end))});
    }
    send_.push_back({members_[member], std::as_bytes(exchange.gather[k])});
  }
}

Status Collective::Exchange(std::string_view operation) {
  // All ranks make the same calls, so their number tells them apart.
  const MessageTag tag{.node = static_cast<uint32_t>(calls_ & 0xffff), .step = calls_ >> 16};
  ++calls_;
  return Exchange(tag, operation);
}

// A call of some ranks only: others do not count it.
Status Collective::ExchangeOf(const SliceExchange& exchange, uint32_t part,
                              std::string_view operation) {
  if (exchange.ranks.empty()) return Exchange(operation);
  return Exchange(
      {.group = kOfMembers, .node = exchange.number, .slice = part, .step = exchange.step},
      operation);
}

Status Collective::Exchange(const MessageTag& tag, std::string_view operation) {
  Status done = mesh_->Exchange(tag, operation, send_, receive_);
  broken_ = broken_ || !done.ok();
  return done;
}

void Collective::SumOwnRanges(const SliceExchange& exchange) {
  const std::span<const Range> ranges = RangesOf(exchange, own_member_);
  const float* received = received_.data();
  for (size_t k = 0; k < exchange.owner.size(); ++k) {
    const bool own = exchange.owner[k] == rank();
    for (const Range& range : ranges) {
      const size_t length = range.end - range.begin;
      float* const out = exchange.summed.data() + range.begin;
      const float* const in = own ? exchange.sum[k].data() + range.begin : received;
      received += length;
      if (k == 0) {
        std::copy_n(in, length, out);
      } else {
        for (size_t i = 0; i < length; ++i) out[i] += in[i];
      }
    }
  }
}

Status Collective::ShareRanges(const SliceExchange& exchange) {
  const std::span<float> summed = exchange.summed;
  const Range mine = RangesOf(exchange, own_member_).front();
  send_.clear();
  receive_.clear();
  for (size_t m = 0; m < members_.size(); ++m) {
    if (m == own_member_) continue;
    const Range range = RangesOf(exchange, m).front();
    send_.push_back({members_[m], std::as_bytes(Piece(summed, mine.begin, mine.end))});
    receive_.push_back({members_[m], std::as_writable_bytes(
                                         summed.subspan(range.begin, range.end - range.begin))});
  }
  return ExchangeOf(exchange, 1, "all-gather of sums");
}

Status Collective::GatherSlices(const SliceGather& gather) {
  DT_CHECK(gather.own.size() == gather.owner.size() && gather.all.size() == gather.owner.size());
  for (size_t k = 0; k < gather.owner.size(); ++k) {
    DT_CHECK(gather.owner[k] < size());
    if (gather.owner[k] == rank()) gather.all[k] = gather.own[k];
  }
  if (size() == 1) return OkStatus();
  DT_TRY_STATUS(GatherSizes(gather));
  return GatherBytes(gather);
}

Status Collective::GatherSizes(const SliceGather& gather) {
  sizes_.resize(gather.owner.size());
  send_.clear();
  receive_.clear();
  for (size_t k = 0; k < sizes_.size(); ++k) {
    if (gather.owner[k] == rank()) {
      sizes_[k] = gather.own[k].size();
      SendToAll(std::as_bytes(std::span(&sizes_[k], 1)));
    } else {
      receive_.push_back({gather.owner[k], std::as_writable_bytes(std::span(&sizes_[k], 1))});
    }
  }
  DT_TRY_STATUS(Exchange("all-gather of sizes"));
  for (size_t k = 0; k < sizes_.size(); ++k) {
    if (sizes_[k] <= kSliceBytesMax) continue;
    return WithHint(
        Internal("slice {} of rank {} leaves {} bytes to gather; at most {} are possible", k,
                 gather.owner[k], sizes_[k], kSliceBytesMax),
        "raise train.slices, or put the tables on servers");
  }
  return OkStatus();
}

Status Collective::GatherBytes(const SliceGather& gather) {
  const auto room = [](uint64_t bytes) { return (bytes + 15) / 16 * 16; };
  size_t needed = 0;
  for (size_t k = 0; k < sizes_.size(); ++k) {
    if (gather.owner[k] != rank()) needed += room(sizes_[k]);
  }
  if (needed > gathered_.size()) gathered_.resize(needed + needed / 8);
  send_.clear();
  receive_.clear();
  size_t at = 0;
  for (size_t k = 0; k < sizes_.size(); ++k) {
    if (gather.owner[k] == rank()) {
      SendToAll(gather.own[k]);
      continue;
    }
    const std::span<std::byte> place = std::span(gathered_).subspan(at, sizes_[k]);
    receive_.push_back({gather.owner[k], place});
    gather.all[k] = place;
    at += room(sizes_[k]);
  }
  return Exchange("all-gather of slices");
}

void Collective::SendToAll(std::span<const std::byte> bytes) {
  for (uint32_t r = 0; r < size(); ++r) {
    if (r != rank()) send_.push_back({r, bytes});
  }
}

Status Collective::Barrier() {
  if (size() == 1) return OkStatus();
  const std::byte here{1};
  std::vector<std::byte> heard(size());
  send_.clear();
  receive_.clear();
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    send_.push_back({r, std::span(&here, 1)});
    receive_.push_back({r, std::span(heard).subspan(r, 1)});
  }
  return Exchange("barrier");
}

}  // namespace dt::worker
