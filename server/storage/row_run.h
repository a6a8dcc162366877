// Rows on their way to disk, gathered by eviction or by a checkpoint until a file holds them. The
// executor's thread fills the run; after that it is constant, and any thread may read it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/rows/row_key.h"

namespace dt::server {

class RowRun {
 public:
  // Returns space for a row's record, which replaces an earlier one of the same row.
  std::span<std::byte> Add(const RowKey& row, uint32_t bytes);
  // The record; empty if the row is not here.
  std::span<const std::byte> Find(const RowKey& row) const;

  struct Entry {
    RowKey key;
    uint32_t bytes = 0;
    uint64_t at = 0;
    std::span<const std::byte> record(const RowRun& run) const {
      return std::span(run.records_).subspan(at, bytes);
    }
  };
  // The current record of each row, in key order.
  std::vector<Entry> Sorted() const;
  size_t rows() const { return rows_.size(); }
  // Memory in use.
  uint64_t bytes() const { return records_.size() + entries_.size() * (sizeof(Entry) + 40); }

 private:
  std::vector<std::byte> records_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<RowKey, uint32_t> rows_;  // The current entry of each row.
};

}  // namespace dt::server
