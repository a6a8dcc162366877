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

// Ranges are cut at multiples of 16 floats: cache lines.
Collective::Range Collective::RangeOf(size_t member, size_t members, size_t elements) {
  const size_t blocks = (elements + 15) / 16;
  const auto cut = [&](size_t m) { return std::min(elements, 16 * (blocks * m / members)); };
  return {cut(member), cut(member + 1)};
}

void Collective::FindMembers(const SliceExchange& exchange) {
  members_.assign(exchange.ranks.begin(), exchange.ranks.end());
  for (uint32_t r = 0; exchange.ranks.empty() && r < size(); ++r) members_.push_back(r);
  const auto own = std::ranges::find(members_, rank());
  DT_CHECK(own != members_.end());
  own_member_ = static_cast<size_t>(own - members_.begin());
}

Collective::Range Collective::OwnRange(const SliceExchange& exchange) const {
  return RangeOf(own_member_, members_.size(), exchange.summed.size());
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
  SumOwnRange(exchange);
  return members_.size() > 1 ? ShareRanges(exchange) : OkStatus();
}

// Sends to each member its range of every own slice's `sum`, and all of the slice's `gather`.
Status Collective::SendSlices(const SliceExchange& exchange) {
  const size_t slices = exchange.owner.size();
  const size_t each = exchange.gathered.size() / slices;
  const Range mine = OwnRange(exchange);
  const size_t length = mine.end - mine.begin;
  received_.resize(slices * length);
  send_.clear();
  receive_.clear();
  for (size_t k = 0; k < slices; ++k) {
    const uint32_t owner = exchange.owner[k];
    DT_CHECK(owner < size());
    if (owner != rank()) {
      receive_.push_back(
          {owner, std::as_writable_bytes(std::span(received_).subspan(k * length, length))});
      receive_.push_back(
          {owner, std::as_writable_bytes(exchange.gathered.subspan(k * each, each))});
      continue;
    }
    DT_CHECK(exchange.sum[k].size() == exchange.summed.size());
    for (size_t m = 0; m < members_.size(); ++m) {
      if (m == own_member_) continue;
      const Range range = RangeOf(m, members_.size(), exchange.summed.size());
      send_.push_back({members_[m], std::as_bytes(Piece(exchange.sum[k], range.begin, range.end))});
      send_.push_back({members_[m], std::as_bytes(exchange.gather[k])});
    }
  }
  return ExchangeOf(exchange, 0, "sum over slices");
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

void Collective::SumOwnRange(const SliceExchange& exchange) const {
  const Range mine = OwnRange(exchange);
  const size_t length = mine.end - mine.begin;
  float* const out = exchange.summed.data() + mine.begin;
  for (size_t k = 0; k < exchange.owner.size(); ++k) {
    const bool own = exchange.owner[k] == rank();
    const float* const in =
        own ? exchange.sum[k].data() + mine.begin : received_.data() + k * length;
    if (k == 0) {
      std::copy_n(in, length, out);
    } else {
      for (size_t i = 0; i < length; ++i) out[i] += in[i];
    }
  }
}

Status Collective::ShareRanges(const SliceExchange& exchange) {
  const std::span<float> summed = exchange.summed;
  const Range mine = OwnRange(exchange);
  send_.clear();
  receive_.clear();
  for (size_t m = 0; m < members_.size(); ++m) {
    if (m == own_member_) continue;
    const Range range = RangeOf(m, members_.size(), summed.size());
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
