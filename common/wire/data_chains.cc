// Messages between servers: records on their way down a chain, shards on their way to a newcomer.
#include <cstring>
#include <iterator>
#include <utility>

#include "common/wire/data_header.h"

namespace dt {
namespace {

auto Add(flatbuffers::FlatBufferBuilder& builder, std::span<const RecordPart> parts) {
  return builder.CreateVectorOfStructs<fb::Part>(parts.size(), [&](size_t i, fb::Part* out) {
    const RecordPart& part = parts[i];
    *out = fb::Part(part.since.value(), part.head_bytes, part.key_bytes, part.gradient_bytes);
  });
}

// Calls `take` with each struct of the vector. The verifier looks at the alignment of the vector's
// length alone, so in a bad message the structs may lie anywhere.
template <class T, class Take>
void ForEach(const flatbuffers::Vector<const T*>& in, Take take) {
  const uint8_t* at = in.Data();
  for (uint32_t i = 0; i < in.size(); ++i, at += sizeof(T)) {
    T aligned;
    std::memcpy(&aligned, at, sizeof(T));
    take(aligned);
  }
}

std::vector<RecordPart> ReadParts(const flatbuffers::Vector<const fb::Part*>& in) {
  std::vector<RecordPart> parts;
  parts.reserve(in.size());
  ForEach(in, [&](const fb::Part& part) {
    parts.push_back(
        {MapVersion(part.since()), part.head_bytes(), part.key_bytes(), part.gradient_bytes()});
  });
  return parts;
}

}  // namespace

namespace wire {

Status ReadRecords(const fb::Records& in, Frames frames, RecordsRequest& out) {
  DT_TRY_STATUS(CheckFrames(frames, 4));
  out.stamp = FromFb(*in.stamp());
  out.from = ProcessId(in.from());
  out.parts = ReadParts(*in.parts());
  // They stay until the step is complete, or for longer; the sender's memory is not held that long.
  out.heads = Frame::Settled(std::move(frames[1]));
  out.keys = Frame::Settled(std::move(frames[2]));
  out.gradients = Frame::Settled(std::move(frames[3]));
  return OkStatus();
}

Status ReadAcks(const fb::Acks& in, const Frames& frames, AcksRequest& out) {
  DT_TRY_STATUS(CheckFrames(frames, 1));
  out.stamp = FromFb(*in.stamp());
  out.from = ProcessId(in.from());
  out.complete = in.complete();
  out.acks.reserve(in.acks()->size());
  ForEach(*in.acks(), [&](const fb::Ack& ack) {
    out.acks.push_back({ShardId(ack.shard()), MapVersion(ack.since()), ack.position()});
  });
  return OkStatus();
}

Status ReadCopy(const fb::Copy& in, Frames frames, CopyRequest& out) {
  DT_TRY_STATUS(CheckFrames(frames, 6));
  out.stamp = FromFb(*in.stamp());
  out.from = ProcessId(in.from());
  out.shard = ShardId(in.shard());
  out.since = MapVersion(in.since());
  out.session = in.session();
  out.number = in.number();
  out.end = in.end();
  out.position = in.position();
  out.now = in.now();
  ForEach(*in.turns(), [&](const fb::Turn& turn) {
    out.turns.push_back({ProcessId(turn.worker()), ViewNumber(turn.view()), turn.order(),
                         turn.next(), turn.clock()});
  });
  out.view = ViewNumber(in.view());
  out.settled = in.settled();
  ForEach(*in.applied(), [&](const fb::Applied& applied) {
    out.applied.push_back({applied.step(), applied.word(), applied.slices()});
  });
  out.life_bytes.assign(in.life_bytes()->begin(), in.life_bytes()->end());
  out.held = ReadParts(*in.held());
  Frame* const to[] = {&out.rows, &out.lives, &out.heads, &out.keys, &out.gradients};
  for (size_t i = 0; i < std::size(to); ++i) *to[i] = Frame::Settled(std::move(frames[i + 1]));
  return OkStatus();
}

Status ReadCopyAck(const fb::CopyAck& in, const Frames& frames, CopyAckRequest& out) {
  DT_TRY_STATUS(CheckFrames(frames, 1));
  out = {FromFb(*in.stamp()),    ProcessId(in.from()), ShardId(in.shard()),
         MapVersion(in.since()), in.session(),         in.next()};
  return OkStatus();
}

}  // namespace wire

using wire::EmptyBuilder;
using wire::Finish;
using wire::ToFb;

Frames Encode(const RecordsRequest& request) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  const auto parts =
      builder.CreateVectorOfStructs<fb::Part>(request.parts.size(), [&](size_t i, fb::Part* out) {
        const RecordPart& part = request.parts[i];
        *out = fb::Part(part.since.value(), part.head_bytes, part.key_bytes, part.gradient_bytes);
      });
  const fb::Stamp stamp = ToFb(request.stamp);
  const auto body = fb::CreateRecords(builder, &stamp, request.from.value(), parts);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::Records, body.Union()));
  frames.push_back(request.heads);
  frames.push_back(request.keys);
  frames.push_back(request.gradients);
  return frames;
}

Frames Encode(const AcksRequest& request) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  const auto acks =
      builder.CreateVectorOfStructs<fb::Ack>(request.acks.size(), [&](size_t i, fb::Ack* out) {
        const ChainAck& ack = request.acks[i];
        *out = fb::Ack(ack.since.value(), ack.position, ack.shard.value());
      });
  const fb::Stamp stamp = ToFb(request.stamp);
  const auto body = fb::CreateAcks(builder, &stamp, request.from.value(), request.complete, acks);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::Acks, body.Union()));
  return frames;
}

Frames Encode(const CopyRequest& request) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  const auto turns =
      builder.CreateVectorOfStructs<fb::Turn>(request.turns.size(), [&](size_t i, fb::Turn* out) {
        const CopyRequest::Turn& turn = request.turns[i];
        *out = fb::Turn(turn.view.value(), turn.order, turn.next, turn.clock, turn.worker.value());
      });
  const auto lives = builder.CreateVector(request.life_bytes);
  const auto held = Add(builder, request.held);
  const auto applied = builder.CreateVectorOfStructs<fb::Applied>(
      request.applied.size(), [&](size_t i, fb::Applied* out) {
        const CopyRequest::Applied& each = request.applied[i];
        *out = fb::Applied(each.step, each.slices, each.word);
      });
  const fb::Stamp stamp = ToFb(request.stamp);
  const auto body = fb::CreateCopy(builder, &stamp, request.from.value(), request.shard.value(),
                                   request.since.value(), request.session, request.number,
                                   request.end, request.position, request.now, turns, lives, held,
                                   request.view.value(), request.settled, applied);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::Copy, body.Union()));
  for (const Frame* frame :
       {&request.rows, &request.lives, &request.heads, &request.keys, &request.gradients}) {
    frames.push_back(*frame);
  }
  return frames;
}

Frames Encode(const CopyAckRequest& request) {
  flatbuffers::FlatBufferBuilder& builder = EmptyBuilder();
  const fb::Stamp stamp = ToFb(request.stamp);
  const auto body = fb::CreateCopyAck(builder, &stamp, request.from.value(), request.shard.value(),
                                      request.since.value(), request.session, request.next);
  Frames frames;
  frames.push_back(Finish(builder, fb::Body::CopyAck, body.Union()));
  return frames;
}

}  // namespace dt
