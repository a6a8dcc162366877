// The sizes of a table as JSON, for result files and `dovetail status --json`. Include it only in
// .cc files: the JSON library is slow to compile.
#pragma once

#include <nlohmann/json.hpp>

#include "common/cluster/job_result.h"

namespace dt {

// Everything except the checksum.
inline nlohmann::ordered_json TableJson(const JobResult::Table& table) {
  return {{"rows", table.rows},
          {"rows_in_memory", table.rows_in_memory},
          {"rows_on_disk", table.rows_on_disk},
          {"bytes", table.bytes},
          {"pushes_refused", table.pushes_refused},
          {"rows_expired", table.rows_expired},
          {"rows_touched", table.rows_touched},
          {"rows_fetched", table.rows_fetched},
          {"rows_written", table.rows_written}};
}

}  // namespace dt
