// The parts of a shard that was copied to here, as entries of the log: the log then holds all of
// the shard, as it holds all records from there on.
//
//   head       u64 kMagic, which is the position of no record | u64 number of frames | u64 sizes
//   gradients  the frames of the message (common/wire/data.h), one behind the other
#pragma once

#include <span>

#include "common/base/status.h"
#include "common/net/frame.h"
#include "common/wire/data.h"
#include "server/shard/record_codec.h"

namespace dt::server {

// Copies the part.
RecordBytes EncodePart(const CopyRequest& part);

// Whether an entry with this head is a part.
bool IsPart(const Frame& head);
// REQUIRES: IsPart. Malformed: EncodePart cannot have made it.
Result<CopyRequest> DecodePart(const Frame& head, const Frame& frames,
                               std::span<const TableSpec> tables);

}  // namespace dt::server
