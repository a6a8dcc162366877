// libsvm (`label id:value …`) and libffm (`label field:id:value …`). A value may be left out and is
// then 1. What follows '#' is a comment.
#pragma once

#include <memory>

#include "worker/data/format/row_format.h"

namespace dt::worker {

struct LibsvmOptions {
  bool fields = false;        // libffm; the field is checked to be a number and not used.
  bool open_length = false;   // A line of another length asks for a ragged column; else it is bad.
  bool open_weights = false;  // A value that is not 1 asks for a weighted column; else it is bad.
  bool labels_optional = false;  // A first word with ':' is no label: the line has none.
};

// `columns` holds one label and one column of keys, in any order.
// REQUIRES: that; see CheckLibsvmColumns.
std::unique_ptr<RowFormat> MakeLibsvmFormat(std::vector<ColumnSpec> columns, LibsvmOptions options);

// Invalid if `columns` cannot be read from libsvm.
Status CheckLibsvmColumns(const std::vector<ColumnSpec>& columns);

// `label` and `features`: what these formats give where the job file lists no columns.
std::vector<ColumnSpec> LibsvmColumns(KeyShape shape);

// Of the first readable line: its number of ids, unweighted. Ragged if there is none.
KeyShape ProbeLibsvm(std::string_view text, LibsvmOptions options);

}  // namespace dt::worker
