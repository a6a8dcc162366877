// libsvm (`label id:value …`) and libffm (`label field:id:value …`). A value may be left out and is
// then 1. What follows '#' is a comment.
#pragma once

#include <memory>

#include "worker/data/format/line_format.h"

namespace dt::worker {

struct LibsvmOptions {
  bool fields = false;  // libffm; the field must be a number, and is not used.
  // A line of another length widens the column to ragged; else it is bad.
  bool open_length = false;
  bool open_weights = false;  // A value other than 1 widens the column to weighted; else it is bad.
  bool labels_optional = false;  // A line whose first word has a ':' has no label.
};

// REQUIRES: `columns` holds one label and one column of keys, in any order (CheckLibsvmColumns).
std::unique_ptr<LineDecoder> MakeLibsvmDecoder(std::vector<ColumnSpec> columns,
                                               LibsvmOptions options);

// Invalid if `columns` cannot be read from libsvm.
Status CheckLibsvmColumns(const std::vector<ColumnSpec>& columns);

// `label` and `features`: the columns of these formats if the job file lists none.
std::vector<ColumnSpec> LibsvmColumns(KeyShape shape);

// The shape of the first readable line: its number of ids, unweighted. Ragged if there is no such
// line.
KeyShape ProbeLibsvm(std::string_view text, LibsvmOptions options);

}  // namespace dt::worker
