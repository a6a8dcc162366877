// What the cells of a data set become, in every format whose columns the job file lists: keys of
// texts and ids, crossed keys, transformed numbers. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/specs/column.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

inline constexpr std::string_view kIdExpected = "an id from 0 to 18446744073709551615";

// Invalid if a column asks for something that these formats cannot do.
Status CheckListedColumns(const std::vector<ColumnSpec>& columns);

// Keys of a text, of an id, and of an integer in its bucket (none: the cell is empty). With the
// transform `named`, equal texts or ids in two columns have different keys.
Key TextKey(const ColumnSpec& column, std::string_view text);
Key IdKey(const ColumnSpec& column, uint64_t id);
Key BucketKey(const ColumnSpec& column, std::optional<int64_t> value);

// SignedLog, with a table of small integers, which most cells are.
class SignedLogs {
 public:
  SignedLogs();
  float operator()(float value) const;

 private:
  std::vector<float> small_;
};

// The crossed columns of a layout.
class Crossings {
 public:
  explicit Crossings(const RowLayout& layout);
  // Fills them in a record of the layout whose other columns are filled.
  void Put(std::byte* record) const;
  bool empty() const { return crossings_.empty(); }

 private:
  struct Crossing {
    std::string_view name;
    uint32_t to = 0;  // Byte offset in the record.
    std::vector<uint32_t> from;
  };
  std::vector<Crossing> crossings_;  // The layout owns the names.
};

}  // namespace dt::worker
