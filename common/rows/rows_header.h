// The first record of a file of rows: what the file holds, as lines of text.
//
//   dovetail rows 3                or 2, without positions
//   step 1200
//   shards 64                      of the job
//   holds 0 2 4                    the shards in this file
//   positions 512 498 500          of each, the number of its last record (server/shard/record.h)
//   table 00c0ffee00c0ffee 16 fp32 17 item    id, dim, dtype, floats of state, name
//   missed 00c0ffee00c0ffee 1200 adam lr=0.001 beta1=0.9 …    id, next step, optimizer
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/float_formats.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/specs/optimizer.h"

namespace dt {

struct RowsHeader {
  // How to read a table with `scope: dense`: its rows are saved as they were after their last push.
  struct Missed {
    OptimizerSpec optimizer;
    Step now = 0;  // Every step before it is part of the checkpoint; as rows count steps.
    friend bool operator==(const Missed&, const Missed&) = default;
  };
  struct Table {
    TableId id;
    uint32_t dim = 0, state = 0;
    std::string name;
    FloatFormat dtype = FloatFormat::kFp32;
    std::optional<Missed> missed = {};
    friend bool operator==(const Table&, const Table&) = default;
  };
  Step step = 0;
  uint32_t shards = 0;
  std::vector<ShardId> holds;
  std::vector<uint64_t> positions;  // One for each shard in `holds`, or none.
  std::vector<Table> tables;
  friend bool operator==(const RowsHeader&, const RowsHeader&) = default;
};

std::string HeaderText(const RowsHeader& header);
// DataLoss unless HeaderText could have made the text.
Result<RowsHeader> ParseRowsHeader(std::string_view text);

}  // namespace dt
