#include "worker/collective/collective.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

std::span<const float> Piece(std::span<const float> all, size_t begin, size_t end) {
  return all.subspan(begin, end - begin);
}

}  // namespace

// Ranges are cut at multiples of 16 floats: cache lines.
Collective::Range Collective::RangeOf(uint32_t rank, size_t elements) const {
  const size_t blocks = (elements + 15) / 16;
  const auto cut = [&](size_t r) { return std::min(elements, 16 * (blocks * r / size())); };
  return {cut(rank), cut(rank + 1)};
}

Status Collective::ExchangeSlices(const SliceExchange& exchange) {
  const size_t slices = exchange.owner.size();
  DT_CHECK(slices > 0 && exchange.sum.size() == slices && exchange.gather.size() == slices);
  DT_CHECK(exchange.gathered.size() % slices == 0);
  if (size() > 1) DT_TRY_STATUS(SendSlices(exchange));
  const size_t each = exchange.gathered.size() / slices;
  for (size_t k = 0; k < slices; ++k) {
    if (exchange.owner[k] != rank()) continue;
    DT_CHECK(exchange.gather[k].size() == each);
    std::ranges::copy(exchange.gather[k], exchange.gathered.begin() + k * each);
  }
  SumOwnRange(exchange);
  return size() > 1 ? ShareRanges(exchange.summed) : OkStatus();
}

// Sends to each rank its range of every own slice's `sum`, and all of the slice's `gather`.
Status Collective::SendSlices(const SliceExchange& exchange) {
  const size_t slices = exchange.owner.size();
  const size_t each = exchange.gathered.size() / slices;
  const Range mine = RangeOf(rank(), exchange.summed.size());
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
    for (uint32_t r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      const Range range = RangeOf(r, exchange.summed.size());
      send_.push_back({r, std::as_bytes(Piece(exchange.sum[k], range.begin, range.end))});
      send_.push_back({r, std::as_bytes(exchange.gather[k])});
    }
  }
  return Exchange("sum over slices");
}

Status Collective::Exchange(std::string_view operation) {
  // All ranks make the same calls, so their number tells them apart.
  const MessageTag tag{.node = static_cast<uint32_t>(calls_ & 0xffff), .step = calls_ >> 16};
  ++calls_;
  Status done = mesh_->Exchange(tag, operation, send_, receive_);
  broken_ = broken_ || !done.ok();
  return done;
}

void Collective::SumOwnRange(const SliceExchange& exchange) const {
  const Range mine = RangeOf(rank(), exchange.summed.size());
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

Status Collective::ShareRanges(std::span<float> summed) {
  const Range mine = RangeOf(rank(), summed.size());
  send_.clear();
  receive_.clear();
  for (uint32_t r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    const Range range = RangeOf(r, summed.size());
    send_.push_back({r, std::as_bytes(Piece(summed, mine.begin, mine.end))});
    receive_.push_back(
        {r, std::as_writable_bytes(summed.subspan(range.begin, range.end - range.begin))});
  }
  return Exchange("all-gather of sums");
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
