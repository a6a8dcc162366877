// Keeps the records of shards as bytes, and lets other shards follow them.
#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "server/shard/record_codec.h"
#include "server/shard/shard_set.h"

namespace dt::test {

class RecordList : public server::RecordSink {
 public:
  struct Bytes {
    Frame head, keys, gradients;
  };

  void OnRecord(ShardId shard, const server::Record& record) override {
    const server::RecordBytes bytes = server::Encode(shard, record);
    list_.push_back({Frame::CopyOf(std::as_bytes(std::span(bytes.head))), Frame::CopyOf(bytes.keys),
                     Frame::CopyOf(bytes.gradients)});
  }
  size_t size() const { return list_.size(); }
  const Bytes& operator[](size_t i) const { return list_[i]; }
  Result<server::ShardRecord> Decoded(size_t i, const server::ShardSet& of) const {
    const auto& [head, keys, gradients] = list_[i];
    return server::DecodeRecord(head, keys, gradients, of.tables(), of.shards_of_job());
  }
  // Lets the shards follow the records [first, last).
  Status Follow(server::ShardSet& shards, size_t first, size_t last) const {
    for (size_t i = first; i < last; ++i) {
      Result<server::ShardRecord> record = Decoded(i, shards);
      if (!record.ok()) return record.status();
      const Status followed = shards.Follow(record->shard, std::move(record->record));
      if (!followed.ok()) return followed;
    }
    return OkStatus();
  }

 private:
  std::vector<Bytes> list_;
};

}  // namespace dt::test
