// Requests as a worker makes them, built from (table, key) → gradient.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/wire/data.h"
#include "server/table/embedding_table.h"

namespace dt::test {

using server::TableSpec;

// Maps (table number, key) to a gradient or value.
using RowMap = std::map<std::pair<uint32_t, Key>, std::vector<float>>;

inline TableSpec SimpleTable(const std::string& name, uint32_t dim,
                             OptimizerKind kind = OptimizerKind::kSgd) {
  TableSpec spec;
  spec.name = name;
  spec.id = TableIdOf(name);
  spec.dim = dim;
  spec.optimizer.kind = kind;
  spec.optimizer.lr = 1.0f;
  spec.init = {InitKind::kNormal, 0.5f};
  spec.seed = 5;
  return spec;
}

template <class T>
Frame FrameOf(const std::vector<T>& values) {
  return Frame::CopyOf(std::as_bytes(std::span(values)));
}

// Encodes rows of the groups for the wire, and decodes them.
inline Frame EncodedRows(const std::vector<TableSpec>& tables, std::span<const KeyGroup> groups,
                         std::span<const float> values) {
  std::vector<std::byte> bytes;
  for (const KeyGroup& group : groups) {
    const TableSpec& table = tables[group.table];
    const size_t begin = bytes.size();
    bytes.resize(begin + RowsBytes(table.wire, table.dim, group.rows));
    EncodeRows(table.wire, table.dim, values.first(size_t{group.rows} * table.dim),
               bytes.data() + begin);
    values = values.subspan(size_t{group.rows} * table.dim);
  }
  return Frame::CopyOf(bytes);
}
inline std::vector<float> DecodedRows(const std::vector<TableSpec>& tables,
                                      std::span<const KeyGroup> groups, const Frame& frame) {
  std::vector<float> values;
  const std::byte* from = frame.bytes().data();
  for (const KeyGroup& group : groups) {
    const TableSpec& table = tables[group.table];
    std::vector<float> rows(size_t{group.rows} * table.dim);
    DecodeRows(table.wire, table.dim, from, rows);
    values.insert(values.end(), rows.begin(), rows.end());
    from += RowsBytes(table.wire, table.dim, group.rows);
  }
  EXPECT_EQ(from, frame.bytes().data() + frame.size());
  return values;
}

// Groups keys by shard and table. Only keys of `shards` are used, and every one of these shards is
// named.
class Grouping {
 public:
  Grouping(const std::vector<TableSpec>& tables, uint32_t shards_of_job,
           const std::vector<ShardId>& shards, const RowMap& rows) {
    std::map<std::pair<ShardId, uint32_t>, std::vector<Key>> groups;
    for (const ShardId shard : shards) pieces.push_back({shard});
    for (const auto& [at, gradient] : rows) {
      const ShardId shard = ShardOf(tables[at.first].id, at.second, shards_of_job);
      if (std::ranges::find(shards, shard) == shards.end()) continue;
      groups[{shard, at.first}].push_back(at.second);
    }
    for (const auto& [at, keys] : groups) {
      out_groups.push_back({at.first, at.second, static_cast<uint32_t>(keys.size())});
      for (const Key key : keys) {
        order.emplace_back(at.second, key);
        out_keys.push_back(key);
        const auto& row = rows.at({at.second, key});
        floats.insert(floats.end(), row.begin(), row.end());
      }
    }
  }
  // A push of all rows, in one slice.
  PushRequest Push(uint64_t request, const Stamp& stamp, Step step) const {
    PushRequest push;
    push.request = request;
    push.stamp = stamp;
    push.step = step;
    push.pieces = pieces;
    push.groups = out_groups;
    push.keys = FrameOf(out_keys);
    push.gradients = FrameOf(floats);
    return push;
  }
  PullRequest Pull(uint64_t request, const Stamp& stamp, Step step) const {
    PullRequest pull;
    pull.request = request;
    pull.stamp = stamp;
    pull.step = step;
    pull.groups = out_groups;
    pull.keys = FrameOf(out_keys);
    return pull;
  }
  ShardPieces pieces;
  KeyGroups out_groups;
  std::vector<Key> out_keys;
  std::vector<std::pair<uint32_t, Key>> order;  // (table, key) in wire order.
  std::vector<float> floats;
};

inline std::vector<ShardId> AllShards(uint32_t shards) {
  std::vector<ShardId> all;
  for (uint32_t s = 0; s < shards; ++s) all.emplace_back(s);
  return all;
}

}  // namespace dt::test
