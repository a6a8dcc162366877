// A column that is in no file. It is computed from a column of keys of the same split when samples
// are read; of the same stripe, if the split is cut into stripes.
//
// sampled_uniform, sampled_unigram: negative items, drawn from the column's keys. Uniformly: every
// distinct key is as likely as any other. By unigrams: a key is as likely as it is frequent. A key
// that is the row's own is drawn again, seven times at most. A draw is a pure function of the seed,
// the column's name, the stripe, the epoch, the row and the draw's number, so it does not depend on
// the worker, the step or the slice that reads the row, nor on how often it is read.
//
// log_frequency: the natural logarithm of the share of the split's (or stripe's) rows that have the
// row's key.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "common/base/ids.h"
#include "common/specs/column.h"
#include "worker/data/batch.h"

namespace dt::worker {

// Keys in memory that outlives this view, one for each row.
struct KeyColumn {
  const std::byte* first = nullptr;
  size_t stride = 0;  // Bytes from one key to the next.
  uint64_t rows = 0;

  Key At(uint64_t row) const {
    Key key;
    std::memcpy(&key, first + row * stride, sizeof key);
    return key;
  }
};

// Immutable: any thread.
class DerivedColumn {
 public:
  // Reads all keys, unless they are drawn by unigrams, and keeps the distinct ones in memory.
  DerivedColumn(const ColumnSpec& spec, uint64_t seed, KeyColumn of);

  // Fills out.keys with `length` keys for each row, or out.floats with a number for each.
  // REQUIRES: they have this size; every row is below KeyColumn::rows.
  void Fill(uint64_t epoch, std::span<const uint64_t> rows, BatchColumn& out) const;

 private:
  // Draw `number` of the row. `stream` stands for the seed, the column and the epoch.
  Key Draw(uint64_t stream, uint64_t row, uint32_t number) const;

  const uint64_t seed_, name_hash_;
  const uint32_t length_;
  const KeyColumn of_;
  const bool uniform_, sampled_;
  std::vector<Key> distinct_;                      // Ascending; used if drawn uniformly.
  absl::flat_hash_map<Key, float> log_frequency_;  // Used if nothing is drawn.
};

}  // namespace dt::worker
