// Lines of cells between delimiters: CSV with named, typed columns, and Criteo's TSV.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "worker/data/format/line_format.h"

namespace dt::worker {

struct DelimitedOptions {
  char delimiter = ',';
  size_t cells = 0;                      // In every line.
  std::vector<size_t> cell_of_column{};  // The cell of columns[i]; kNoCell: it has none.
  // The cell with the weights of columns[i]; kNoCell: it has none. Empty: no column has weights.
  std::vector<size_t> weights_of_column{};
  bool labels_optional = false;  // A label or weight may have no cell, or an empty one.
};
inline constexpr size_t kNoCell = ~size_t{0};

// A cell that starts with '"' ends at the next single '"', and may hold the delimiter and '""' for
// a quote (RFC 4180), but no end of line; with a tab as delimiter quotes mean nothing.
std::unique_ptr<LineDecoder> MakeDelimitedDecoder(std::vector<ColumnSpec> columns,
                                                  DelimitedOptions options);

// The cells of a first line, without blanks around them.
std::vector<std::string> HeaderCells(std::string_view line, char delimiter);

}  // namespace dt::worker
