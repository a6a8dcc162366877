// Records as bytes, for logs and for other members of a chain. Little-endian:
//
//   head       RecordHead | groups of {table u32, rows u32}
//   keys       u64 [sum of rows]
//   gradients  as in the push (common/wire/data.h): in the wire format of each group's table
//
// Keys and gradients are not copied. Decoding trusts nothing: it checks sizes, counts and to which
// shard each key belongs.
#pragma once

#include <memory>
#include <string>

#include "common/net/frame.h"
#include "common/wire/data.h"
#include "server/shard/record.h"
#include "server/table/table_spec.h"

namespace dt::server {

struct RecordBytes {
  std::string head;
  std::span<const std::byte> keys, gradients;  // Valid while `owner` lives.
  std::shared_ptr<const void> owner;
};
RecordBytes Encode(ShardId shard, const Record& record);

struct ShardRecord {
  ShardId shard;
  Record record;
};
// REQUIRES: nobody else can write to the memory of the frames. Malformed: Encode cannot have made
// them for a job with these tables and this number of shards.
Result<ShardRecord> DecodeRecord(const Frame& head, const Frame& keys, const Frame& gradients,
                                 std::span<const TableSpec> tables, uint32_t shards_of_job);

}  // namespace dt::server
