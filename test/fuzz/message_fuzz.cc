// A message between worker and server, or between two servers, is refused, or its arrays are as
// long as its header says; so are the records and copied rows in it. The input is a sequence of
// frames, each a length (two bytes, low byte first) and that many bytes, or all that are left.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "common/wire/data.h"
#include "server/chain/copy_rows.h"
#include "server/chain/record_message.h"

namespace dt {
namespace {

const std::vector<WireTable> kTables = {{3, FloatFormat::kBf16}, {1}, {8, FloatFormat::kInt8}};

std::vector<server::TableSpec> Specs() {
  std::vector<server::TableSpec> specs;
  for (const WireTable& table : kTables) {
    specs.push_back({.id = TableId(specs.size() + 1), .dim = table.dim, .wire = table.format});
  }
  return specs;
}
// The job has one shard, so that any key may be in a record.
const std::vector<server::TableSpec> kSpecs = Specs();
constexpr uint32_t kShards = 1;

Frames FramesOf(std::span<const std::byte> bytes) {
  Frames frames;
  while (bytes.size() >= 2) {
    const size_t wanted = std::to_integer<size_t>(bytes[0]) | std::to_integer<size_t>(bytes[1])
                                                                  << 8;
    const size_t length = std::min(wanted, bytes.size() - 2);
    frames.push_back(Frame::CopyOf(bytes.subspan(2, length)));
    bytes = bytes.subspan(2 + length);
  }
  return frames;
}

// Returns the number of bytes of gradients for these groups.
size_t CheckKeys(std::span<const KeyGroup> groups, const Frame& keys) {
  size_t rows = 0, bytes = 0;
  for (const KeyGroup& group : groups) {
    DT_CHECK(group.table < kTables.size());
    rows += group.rows;
    bytes += kTables[group.table].BytesOf(group.rows);
  }
  DT_CHECK(keys.size() == rows * sizeof(uint64_t));
  return bytes;
}

void CheckRecords(const RecordsRequest& message) {
  const auto records = server::RecordsIn(message, kSpecs, kShards);
  if (!records.ok()) return;
  DT_CHECK(records->size() == message.parts.size());
  for (const server::LinkRecord& each : *records) {
    DT_CHECK(each.record.shard.value() < kShards);
    for (const server::GroupView& group : each.record.record.contribution.groups) {
      DT_CHECK(group.gradients.size() == kTables[group.table].BytesOf(group.keys.size()));
    }
  }
}

void CheckCopy(const CopyRequest& copy) {
  const auto rows = server::RowsIn(copy.rows.bytes());
  if (rows.ok()) {
    size_t bytes = 0;
    for (const server::CopiedRow& row : *rows) bytes += 16 + row.record.size();
    DT_CHECK(bytes <= copy.rows.size());
  }
  CheckRecords(
      {.parts = copy.held, .heads = copy.heads, .keys = copy.keys, .gradients = copy.gradients});
}

void OneInput(std::span<const std::byte> bytes) {
  const Result<DataRequest> request = DecodeDataRequest(FramesOf(bytes), kTables);
  if (request.ok() && request->kind == DataRequest::Kind::kPull) {
    CheckKeys(request->pull.groups, request->pull.keys);
  }
  if (request.ok() && request->kind == DataRequest::Kind::kPush) {
    const PushRequest& push = request->push;
    DT_CHECK(push.gradients.size() == CheckKeys(push.groups, push.keys));
    DT_CHECK(push.slice < push.slices);
    for (const ShardPiece& piece : push.pieces) DT_CHECK(piece.piece < piece.pieces);
  }
  if (request.ok() && request->kind == DataRequest::Kind::kRecords) CheckRecords(request->records);
  if (request.ok() && request->kind == DataRequest::Kind::kCopy) CheckCopy(request->copy);
  const Result<DataReply> reply = DecodeDataReply(FramesOf(bytes));
  if (reply.ok()) DT_CHECK(reply->values.size() % sizeof(float) == 0);
}

}  // namespace
}  // namespace dt

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dt::OneInput(std::as_bytes(std::span(data, size)));
  return 0;
}
