// First values of a job that are not its own: of another job's checkpoint, or from files. All else
// begins as in any job.
#pragma once

#include <string>
#include <vector>

#include "common/base/fields.h"
#include "common/base/ids.h"

namespace dt {

struct TakenTable {
  TableId id;
  bool state = false;  // With the rows' optimizer state; else it begins anew.
  std::string file;    // The rows are those of this file (common/rows/file_rows.h); "": they are
                       // those of the checkpoint.
  DT_FIELDS(id, state, file)
  friend bool operator==(const TakenTable&, const TakenTable&) = default;
};

struct TakenParts {
  std::vector<TakenTable> tables;   // The others begin empty.
  std::vector<std::string> arrays;  // Dense parameters, and optimizer state, of the checkpoint.
  std::string file;                 // With more dense parameters (common/arrays); "": none.
  std::vector<std::string> of_file;
  DT_FIELDS(tables, arrays, file, of_file)
  friend bool operator==(const TakenParts&, const TakenParts&) = default;

  const TakenTable* Find(TableId id) const {
    for (const TakenTable& table : tables) {
      if (table.id == id) return &table;
    }
    return nullptr;
  }
};

}  // namespace dt
