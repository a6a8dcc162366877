#include "worker/exchange/row_exchange.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "worker/exchange/finite_checks.h"

namespace dt::worker {

RowExchange::RowExchange(const Plan& plan, Accelerator* accelerator)
    : plan_(plan),
      messages_(plan.slices),
      own_(plan.slices),
      all_(plan.slices),
      sizes_(plan.slices) {
  const Graph& graph = plan.graph;
  for (const Node& node : graph.nodes) {
    if (node.op != "sum_rows") continue;
    DT_CHECK(node.inputs.size() == 2 && node.outputs.size() == 3);
    Piece& piece = pieces_.emplace_back();
    piece.in = node.inputs[0];
    piece.sums = node.outputs[0], piece.numbers = node.outputs[1],
    piece.steps_since_update = node.outputs[2];
    piece.keys.resize(plan.slices);
    piece.grads.resize(plan.slices);
    const auto numbers = std::ranges::find(graph.inputs, node.inputs[1], &InputSpec::value);
    if (numbers == graph.inputs.end() || numbers->kind != InputKind::kRowNumbers) continue;
    piece.table = numbers->table;
    piece.dim = graph.tables[piece.table].dim;
  }
  counts_.resize(pieces_.size());
  for (AlignedBuffer& message : messages_) message = AlignedBuffer(accelerator);
}

Status RowExchange::Open() {
  for (const Piece& piece : pieces_) {
    const bool made = plan_.graph.value(piece.in).kind == ValueKind::kNode;
    if (made && piece.table != kNone && plan_.graph.tables[piece.table].store != kNone) continue;
    return Internal("{} sums rows of no table on the worker", plan_.graph.value(piece.sums).name);
  }
  return OkStatus();
}

// ------------------------------------------------------------ own slices

uint64_t RowExchange::BytesFor(std::span<const uint64_t> keys) const {
  uint64_t bytes = keys.size_bytes();
  for (size_t p = 0; p < keys.size(); ++p) {
    bytes += keys[p] * (sizeof(Key) + pieces_[p].dim * sizeof(float));
  }
  return bytes;
}

// Begins the message of an own slice with counts_; returns where the rest goes.
std::byte* RowExchange::Begin(SliceIndex slice, size_t bytes) {
  auto* const memory = static_cast<std::byte*>(messages_[slice].Reserve(bytes));
  own_[slice] = {memory, bytes};
  const std::span<const std::byte> counts = std::as_bytes(std::span(counts_));
  return std::ranges::copy(counts, memory).out;
}

void RowExchange::AddNothing(SliceIndex slice) {
  if (pieces_.empty()) return;
  std::ranges::fill(counts_, uint64_t{0});
  Begin(slice, BytesFor(counts_));
}

void RowExchange::PlacePieces(const LookupPlan& slice, Bindings& bindings) {
  if (pieces_.empty()) return;
  for (size_t p = 0; p < pieces_.size(); ++p) counts_[p] = slice.tables[pieces_[p].table].size();
  const SliceIndex k = slice.batch.slice;
  std::byte* at = Begin(k, BytesFor(counts_));
  for (const Piece& piece : pieces_) {
    at = std::ranges::copy(std::as_bytes(std::span(slice.tables[piece.table])), at).out;
  }
  auto* grads = reinterpret_cast<float*>(at);
  for (size_t p = 0; p < pieces_.size(); ++p) {
    bindings.Place(pieces_[p].in, grads);
    grads += counts_[p] * pieces_[p].dim;
  }
}

// ------------------------------------------------------------ all slices

Status RowExchange::Join(const Joined& slices, Bindings& bindings) {
  DT_CHECK(slices.tables != nullptr && slices.owner.size() == plan_.slices);
  DT_TRY_STATUS(GatherSizes(slices));
  DT_TRY_STATUS(GatherMessages(slices));
  std::ranges::fill(own_, std::span<const std::byte>());
  DT_TRY_STATUS(Read(slices.owner));
  const Step step = slices.call.step;
  WorkerTables& tables = *slices.tables;
  for (Piece& piece : pieces_) {
    piece.sum.Begin(piece.keys);
    DT_TRY_STATUS(tables.BindStep(piece.table, piece.sum.keys(), step));
  }
  DT_TRY_STATUS(bindings.BindStep(tables.views()));
  for (Piece& piece : pieces_) {
    DT_TRY_STATUS(SumPiece(piece, step, tables.views()[piece.table], bindings));
  }
  return OkStatus();
}

Status RowExchange::GatherSizes(const Joined& slices) {
  send_.clear();
  receive_.clear();
  for (size_t k = 0; k < sizes_.size(); ++k) {
    const std::span<uint64_t> size(&sizes_[k], 1);
    if (slices.owner[k] == slices.communicator.rank()) {
      sizes_[k] = own_[k].size();
      SendToOthers(slices, std::as_bytes(size));
    } else {
      receive_.push_back({slices.owner[k], std::as_writable_bytes(size)});
    }
  }
  DT_TRY_STATUS(Exchange(slices, 0));
  for (size_t k = 0; k < sizes_.size(); ++k) {
    if (sizes_[k] <= kSliceBytesMax) continue;
    return WithHint(
        Internal("slice {} of rank {} leaves {} bytes to gather; at most {} are possible", k,
                 slices.owner[k], sizes_[k], kSliceBytesMax),
        "raise train.slices, or put the tables on servers");
  }
  return OkStatus();
}

Status RowExchange::GatherMessages(const Joined& slices) {
  const uint32_t rank = slices.communicator.rank();
  const auto room = [](uint64_t bytes) { return (bytes + 15) / 16 * 16; };
  size_t needed = 0;
  for (size_t k = 0; k < sizes_.size(); ++k) {
    if (slices.owner[k] != rank) needed += room(sizes_[k]);
  }
  if (needed > gathered_.size()) gathered_.resize(needed + needed / 8);
  send_.clear();
  receive_.clear();
  size_t at = 0;
  for (size_t k = 0; k < sizes_.size(); ++k) {
    if (slices.owner[k] == rank) {
      all_[k] = own_[k];
      SendToOthers(slices, own_[k]);
      continue;
    }
    const std::span<std::byte> place = std::span(gathered_).subspan(at, sizes_[k]);
    receive_.push_back({slices.owner[k], place});
    all_[k] = place;
    at += room(sizes_[k]);
  }
  return Exchange(slices, 1);
}

void RowExchange::SendToOthers(const Joined& slices, std::span<const std::byte> bytes) {
  for (uint32_t r = 0; r < slices.call.group.size(); ++r) {
    if (r != slices.communicator.rank()) send_.push_back({r, bytes});
  }
}

Status RowExchange::Exchange(const Joined& slices, SliceIndex part) {
  if (send_.empty() && receive_.empty()) return OkStatus();
  CollectiveCall call = slices.call;
  call.slice = part;
  return slices.communicator.NeighborExchange(call, send_, receive_);
}

// Finds keys and gradients in each slice's message.
Status RowExchange::Read(std::span<const uint32_t> owner) {
  for (size_t k = 0; k < all_.size(); ++k) {
    const std::span<const std::byte> message = all_[k];
    const size_t counts_bytes = counts_.size() * sizeof(uint64_t);
    if (message.size() >= counts_bytes) std::memcpy(counts_.data(), message.data(), counts_bytes);
    const bool in_range = std::ranges::all_of(
        counts_, [&](uint64_t count) { return count <= message.size() / sizeof(Key); });
    if (message.size() < counts_bytes || !in_range || BytesFor(counts_) != message.size()) {
      return Internal("slice {} of rank {} left {} bytes, which are no rows of this plan", k,
                      owner[k], message.size());
    }
    const auto* keys = reinterpret_cast<const Key*>(message.data() + counts_bytes);
    for (size_t p = 0; p < pieces_.size(); keys += counts_[p++]) {
      pieces_[p].keys[k] = {keys, counts_[p]};
    }
    const auto* grads = reinterpret_cast<const float*>(keys);
    for (size_t p = 0; p < pieces_.size(); ++p) {
      pieces_[p].grads[k] = {grads, counts_[p] * pieces_[p].dim};
      grads += pieces_[p].grads[k].size();
    }
  }
  return OkStatus();
}

Status RowExchange::SumPiece(Piece& piece, Step step, const TableView& table,
                             const Bindings& bindings) const {
  const TensorView& view = bindings.view(piece.sums);
  const std::span<float> sums(static_cast<float*>(view.data), static_cast<size_t>(view.size()));
  piece.sum.Sum(piece.grads, piece.dim, sums);
  std::ranges::copy(table.numbers, static_cast<uint32_t*>(bindings.view(piece.numbers).data));
  std::ranges::copy(table.steps_since_update,
                    static_cast<uint32_t*>(bindings.view(piece.steps_since_update).data));
  return CheckRowSums(plan_.graph.tables[piece.table], sums, step);
}

}  // namespace dt::worker
