// What both data.cc and data_chains.cc need to write and read headers. Only for these two.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "common/wire/data.h"
#include "data_generated.h"

namespace dt::wire {

fb::Stamp ToFb(const Stamp& stamp);
Stamp FromFb(const fb::Stamp& stamp);

// An empty builder of this thread; it keeps its memory from message to message.
flatbuffers::FlatBufferBuilder& EmptyBuilder();
Frame Finish(flatbuffers::FlatBufferBuilder& builder, fb::Body type,
             flatbuffers::Offset<void> body);

Status CheckFrames(const Frames& frames, size_t want);

// data_chains.cc: messages between servers.
Status ReadRecords(const fb::Records& in, Frames frames, RecordsRequest& out);
Status ReadAcks(const fb::Acks& in, const Frames& frames, AcksRequest& out);
Status ReadCopy(const fb::Copy& in, Frames frames, CopyRequest& out);
Status ReadCopyAck(const fb::CopyAck& in, const Frames& frames, CopyAckRequest& out);

}  // namespace dt::wire
