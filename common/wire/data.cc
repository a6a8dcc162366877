#include "common/wire/data.h"

#include <cmath>

#include "common/net/socket.h"
#include "common/wire/data_header.h"
#include "common/wire/spec_tables.h"
#include "common/wire/table_reader.h"
#include "common/wire/table_writer.h"
#include "data_generated.h"

namespace dt {
namespace wire {

fb::Stamp ToFb(const Stamp& stamp) {
  return {stamp.generation.value(), stamp.view.value(), stamp.map.value(), stamp.server.value()};
}

Stamp FromFb(const fb::Stamp& stamp) {
  return {Generation(stamp.generation()), ViewNumber(stamp.view()), MapVersion(stamp.map()),
          ProcessId(stamp.server())};
}

// An empty builder of this thread; it keeps its memory from message to message.
flatbuffers::FlatBufferBuilder& EmptyBuilder() {
  thread_local flatbuffers::FlatBufferBuilder builder;
  builder.Clear();
  return builder;
}
Frame Finish(flatbuffers::FlatBufferBuilder& builder, fb::Body type,
             flatbuffers::Offset<void> body) {
  builder.Finish(fb::CreateData(builder, kWireVersion, type, body), fb::DataIdentifier());
  return Frame::CopyOf(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())));
}

Status CheckFrames(const Frames& frames, size_t want) {
  if (frames.size() == want) return OkStatus();
  return Malformed("data message: {} frames instead of {}", frames.size(), want);
}

}  // namespace wire

namespace {

using wire::CheckFrames;
using wire::EmptyBuilder;
using wire::Finish;
using wire::FromFb;
using wire::ToFb;

static_assert(kMessageBytesMax == kPartBytesMax);  // Sockets refuse larger messages.

constexpr size_t kHeaderBytesMax = 16 << 20;
constexpr uint32_t kSlicesMax = 1 << 20;

// Maximum number of FlatBuffers tables in a header. A reply can name every chain of a map.
constexpr uint32_t kRequestTablesMax = 8, kReplyTablesMax = 1 << 22;

auto Add(flatbuffers::FlatBufferBuilder& builder, std::span<const KeyGroup> groups) {
  return builder.CreateVectorOfStructs<fb::Group>(groups.size(), [&](size_t i, fb::Group* out) {
    *out = fb::Group(groups[i].shard.value(), groups[i].table, groups[i].rows);
  });
}

auto Add(flatbuffers::FlatBufferBuilder& builder, std::span<const ShardPiece> pieces) {
  return builder.CreateVectorOfStructs<fb::Piece>(pieces.size(), [&](size_t i, fb::Piece* out) {
    *out = fb::Piece(pieces[i].shard.value(), pieces[i].piece, pieces[i].pieces);
  });
}

// Returns the header after checking its bytes, its version and the number of frames.
Result<const fb::Data*> OpenHeader(const Frames& frames, uint32_t tables_max) {
  if (frames.empty()) return Malformed("data message: empty");
  const auto bytes = frames[0].as<uint8_t>();
  if (bytes.size() > kHeaderBytesMax) {
    return Malformed("data message: a header of {} bytes, at most {}", bytes.size(),
                     kHeaderBytesMax);
  }
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), /*max_depth=*/8, tables_max);
  if (!fb::VerifyDataBuffer(verifier)) {
    return Malformed("data message: the {} bytes of the header are damaged", bytes.size());
  }
  const fb::Data* const data = fb::GetData(bytes.data());
  if (data->version() != kWireVersion) {
    return Malformed("data message: wire version {}, this program speaks {}", data->version(),
                     kWireVersion);
  }
  return data;
}

struct Counts {
  uint64_t rows = 0;
  uint64_t bytes = 0;  // Size of the values or gradients.
};

// Groups must ascend by (shard, table), so that none is repeated.
Result<Counts> ReadGroups(const flatbuffers::Vector<const fb::Group*>& in,
                          std::span<const WireTable> tables, KeyGroups& out) {
  Counts counts;
  out.reserve(in.size());
  for (const fb::Group* g : in) {
    if (g->table() >= tables.size()) {
      return Malformed("data message: table number {} of {}", g->table(), tables.size());
    }
    const KeyGroup group{ShardId(g->shard()), g->table(), g->rows()};
    if (!out.empty() && (group.shard < out.back().shard ||
                         (group.shard == out.back().shard && group.table <= out.back().table))) {
      return Malformed("data message: shard {} table {} is out of order", g->shard(), g->table());
    }
    out.push_back(group);
    counts.rows += group.rows;
    counts.bytes += tables[group.table].BytesOf(group.rows);
    if (counts.rows > kMessageBytesMax / sizeof(uint64_t) || counts.bytes > kMessageBytesMax) {
      return Malformed("data message: more than {} bytes", kMessageBytesMax);
    }
  }
  return counts;
}

Status CheckSize(const Frame& frame, uint64_t count, size_t element, const char* what) {
  if (frame.size() == count * element) return OkStatus();
  return Malformed("data message: {} bytes of {} instead of {}", frame.size(), what,
                   count * element);
}

Status ReadPull(const fb::Pull& in, Frames frames, std::span<const WireTable> tables,
                PullRequest& out) {
  DT_TRY_STATUS(CheckFrames(frames, 2));
  if (in.mode() > static_cast<uint8_t>(PullMode::kPrefetch)) {
    return Malformed("pull: mode {} is unknown", in.mode());
  }
  DT_TRY(const Counts counts, ReadGroups(*in.groups(), tables, out.groups));
  DT_TRY_STATUS(CheckSize(frames[1], counts.rows, sizeof(uint64_t), "keys"));
  out.request = in.request();
  out.stamp = FromFb(*in.stamp());
  out.step = in.step();
  out.mode = static_cast<PullMode>(in.mode());
  out.keys = Frame::Settled(std::move(frames[1]));
  return OkStatus();
}

// Pieces must ascend by shard, and every group's shard must have a piece.
Status ReadPieces(const flatbuffers::Vector<const fb::Piece*>& in, const KeyGroups& groups,
                  ShardPieces& out) {
  out.reserve(in.size());
  size_t named = 0;
  for (const fb::Piece* p : in) {
    const ShardPiece piece{ShardId(p->shard()), p->piece(), p->pieces()};
    if (!out.empty() && piece.shard <= out.back().shard) {
      return Malformed("push: shard {} is out of order", p->shard());
    }
    if (piece.pieces == 0 || piece.pieces > kPiecesMax || piece.piece >= piece.pieces) {
      return Malformed("push: piece {} of {}", piece.piece, piece.pieces);
    }
    out.push_back(piece);
    while (named < groups.size() && groups[named].shard == piece.shard) ++named;
  }
  if (named == groups.size()) return OkStatus();
  return Malformed("push: rows of shard {}, of which it has no piece", groups[named].shard.value());
}

Status CheckPush(const fb::Push& in) {
  if (in.slices() == 0 || in.slices() > kSlicesMax || in.slice() >= in.slices()) {
    return Malformed("push: slice {} of {}", in.slice(), in.slices());
  }
  if (!std::isfinite(in.lr_scale()) || in.lr_scale() < 0) {
    return Malformed("push: a rate scale of {}", in.lr_scale());
  }
  if (in.mode() > static_cast<uint8_t>(PushMode::kSetAbsent)) {
    return Malformed("push: mode {} is unknown", in.mode());
  }
  if (in.order() > in.step()) {
    return Malformed("push: step {} of an order that begins at {}", in.step(), in.order());
  }
  if (in.settled() > in.step()) {
    return Malformed("push: step {} of those before {}, which are complete", in.step(),
                     in.settled());
  }
  return OkStatus();
}

Status ReadPush(const fb::Push& in, Frames frames, std::span<const WireTable> tables,
                PushRequest& out) {
  DT_TRY_STATUS(CheckFrames(frames, 3));
  DT_TRY_STATUS(CheckPush(in));
  DT_TRY(const Counts counts, ReadGroups(*in.groups(), tables, out.groups));
  DT_TRY_STATUS(ReadPieces(*in.pieces(), out.groups, out.pieces));
  DT_TRY_STATUS(CheckSize(frames[1], counts.rows, sizeof(uint64_t), "keys"));
  DT_TRY_STATUS(CheckSize(frames[2], counts.bytes, 1, "gradients"));
  out.request = in.request();
  out.stamp = FromFb(*in.stamp());
  out.step = in.step();
  out.slice = in.slice();
  out.slices = in.slices();
  out.lr_scale = in.lr_scale();
  out.mode = static_cast<PushMode>(in.mode());
  out.turn = {
      ProcessId(in.worker()), out.stamp.view, in.order(), in.number(), in.clock(), in.settled()};
  out.keys = Frame::Settled(std::move(frames[1]));
  out.gradients = std::move(frames[2]);
  return OkStatus();
}

Status ReadRefused(const fb::Reply& in, size_t header_bytes, DataReply& out) {
  if (in.refused() == nullptr) return OkStatus();
  BudgetReader reader(header_bytes);
  if (reader.Require(in.change() != nullptr)) tables::Read(reader, *in.change(), out.change);
  for (const uint32_t shard : *in.refused()) {
    reader.Require(out.refused.empty() || out.refused.back() < ShardId(shard));
    out.refused.emplace_back(shard);
  }
  return reader.ok() ? OkStatus() : Malformed("answer: a change of the shard map that is none");
}

std::string TextOf(const flatbuffers::String* text) {
  return text == nullptr ? std::string() : text->str();
}

}  // namespace

Frames Encode(const PullRequest& request) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  const auto groups = Add(builder, request.groups);
  const fb::Stamp stamp = ToFb(request.stamp);
  const auto body = fb::CreatePull(builder, request.request, request.step, &stamp,
                                   static_cast<uint8_t>(request.mode), groups);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::Pull, body.Union()));
  frames.push_back(request.keys);
  return frames;
}

Frames Encode(const PushRequest& request) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  const auto pieces = Add(builder, request.pieces);
  const auto groups = Add(builder, request.groups);
  const fb::Stamp stamp = ToFb(request.stamp);
  const SenderTurn& turn = request.turn;
  const auto body =
      fb::CreatePush(builder, request.request, request.step, &stamp, request.slice, request.slices,
                     request.lr_scale, pieces, groups, static_cast<uint8_t>(request.mode),
                     turn.worker.value(), turn.order, turn.number, turn.clock, turn.settled);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::Push, body.Union()));
  frames.push_back(request.keys);
  frames.push_back(request.gradients);
  return frames;
}

Frames Encode(const CompleteRequest& request) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  const fb::Stamp stamp = ToFb(request.stamp);
  const auto body = fb::CreateComplete(builder, request.step, &stamp);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::Complete, body.Union()));
  return frames;
}

Frames Encode(const DataReply& reply) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  flatbuffers::Offset<flatbuffers::String> what, where, hint;
  if (!reply.status.ok()) {
    const Problem problem = ProblemOf(reply.status);
    what = builder.CreateString(problem.what);
    where = builder.CreateString(problem.where);
    hint = builder.CreateString(problem.hint);
  }
  flatbuffers::Offset<flatbuffers::Vector<uint32_t>> refused;
  flatbuffers::Offset<specs_fbs::MapChange> change;
  if (!reply.refused.empty()) {
    std::vector<uint32_t> shards;
    for (const ShardId shard : reply.refused) shards.push_back(shard.value());
    refused = builder.CreateVector(shards);
    change = tables::Write(builder, reply.change);
  }
  const auto code = static_cast<uint32_t>(reply.status.code());
  const auto body = fb::CreateReply(builder, reply.request, code, what, where, hint, reply.disk,
                                    reply.clock, refused, change);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::Reply, body.Union()));
  if (reply.status.ok()) frames.push_back(reply.values);
  return frames;
}

Result<DataRequest> DecodeDataRequest(Frames frames, std::span<const WireTable> tables) {
  DT_TRY(const fb::Data* const data, OpenHeader(frames, kRequestTablesMax));
  const Frame header = frames[0];  // Keeps the bytes alive that `data` points to.
  DataRequest out;
  switch (data->body_type()) {
    case fb::Body::Pull:
      out.kind = DataRequest::Kind::kPull;
      DT_TRY_STATUS(ReadPull(*data->body_as_Pull(), std::move(frames), tables, out.pull));
      return out;
    case fb::Body::Push:
      out.kind = DataRequest::Kind::kPush;
      DT_TRY_STATUS(ReadPush(*data->body_as_Push(), std::move(frames), tables, out.push));
      return out;
    case fb::Body::Complete: {
      const fb::Complete& in = *data->body_as_Complete();
      DT_TRY_STATUS(CheckFrames(frames, 1));
      out.kind = DataRequest::Kind::kComplete;
      out.complete = {FromFb(*in.stamp()), in.step()};
      return out;
    }
    case fb::Body::Records:
      out.kind = DataRequest::Kind::kRecords;
      DT_TRY_STATUS(wire::ReadRecords(*data->body_as_Records(), std::move(frames), out.records));
      return out;
    case fb::Body::Acks:
      out.kind = DataRequest::Kind::kAcks;
      DT_TRY_STATUS(wire::ReadAcks(*data->body_as_Acks(), frames, out.acks));
      return out;
    case fb::Body::Copy:
      out.kind = DataRequest::Kind::kCopy;
      DT_TRY_STATUS(wire::ReadCopy(*data->body_as_Copy(), std::move(frames), out.copy));
      return out;
    case fb::Body::CopyAck:
      out.kind = DataRequest::Kind::kCopyAck;
      DT_TRY_STATUS(wire::ReadCopyAck(*data->body_as_CopyAck(), frames, out.copy_ack));
      return out;
    default:
      return Malformed("data message: not a request");
  }
}

Result<DataReply> DecodeDataReply(Frames frames) {
  DT_TRY(const fb::Data* const data, OpenHeader(frames, kReplyTablesMax));
  const fb::Reply* const in = data->body_as_Reply();
  if (in == nullptr) return Malformed("data message: not an answer");
  if (in->code() > static_cast<uint32_t>(StatusCode::kUnauthenticated)) {
    return Malformed("answer: code {} is unknown", in->code());
  }
  const auto code = static_cast<StatusCode>(in->code());
  DT_TRY_STATUS(CheckFrames(frames, code == StatusCode::kOk ? 2 : 1));
  DataReply out;
  out.request = in->request();
  out.disk = in->disk();
  out.clock = in->clock();
  DT_TRY_STATUS(ReadRefused(*in, frames[0].size(), out));
  if (code == StatusCode::kOk) {
    if (frames[1].size() % sizeof(float) != 0) {
      return Malformed("answer: {} bytes of values", frames[1].size());
    }
    out.values = std::move(frames[1]);
    return out;
  }
  out.status = MakeStatus(code, TextOf(in->what()));
  out.status = WithHint(WithWhere(out.status, TextOf(in->where())), TextOf(in->hint()));
  return out;
}

}  // namespace dt
