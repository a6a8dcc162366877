// Records on their way from one member of a chain to the next: many records, of any shards, in one
// message (common/wire/data.h). Their bytes lie one behind the other, each record's gradients
// padded to a multiple of 8 bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/net/frame_pool.h"
#include "common/wire/data.h"
#include "server/shard/record_codec.h"

namespace dt::server {

class RecordMessageWriter {
 public:
  // A message is full when its records have more bytes, or when there are more of them.
  static constexpr uint64_t kBytesMax = 1 << 20;
  static constexpr size_t kRecordsMax = 4096;

  bool empty() const { return records_.empty(); }
  bool full() const { return bytes_ >= kBytesMax || records_.size() >= kRecordsMax; }

  // `since`: the version of the map at which the shard's chain last changed. The record must live
  // until Take.
  void Add(MapVersion since, const RecordBytes& record);

  // The message with all records added, without stamp and sender; the writer is empty afterwards.
  // The bytes are copied.
  RecordsRequest Take(FramePool& frames);

 private:
  struct Item {
    MapVersion since;
    const RecordBytes* record;
  };
  std::vector<Item> records_;
  uint64_t bytes_ = 0;
};

struct LinkRecord {
  ShardRecord record;
  MapVersion since;
};

// The records of a message, in its order. Errors: Malformed, as DecodeRecord.
Result<std::vector<LinkRecord>> RecordsIn(const RecordsRequest& message,
                                          std::span<const TableSpec> tables,
                                          uint32_t shards_of_job);

}  // namespace dt::server
