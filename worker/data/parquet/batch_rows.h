// Turns batches of Arrow columns into rows of the data set.
//
// A null is what an empty cell of CSV is: a float is `fill`, a text is the empty text, a list has
// no items; an id, a label and a weight must be there.
#pragma once

#include <vector>

#include "worker/data/arrow/arrow_table.h"
#include "worker/data/format/cell_values.h"
#include "worker/data/format/file_format.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

// Immutable: any thread.
class BatchRows {
 public:
  static constexpr size_t kNoColumn = ~size_t{0};

  // column_of[c]: where column c of the layout is in a batch; kNoColumn: nowhere, as for crossed
  // columns, and for labels and weights where they may be absent. weights_of[c]: where the weights
  // of a list are; empty if no column has some. The layout outlives this.
  BatchRows(const RowLayout& layout, std::vector<size_t> column_of, bool labels_optional,
            std::vector<size_t> weights_of = {});

  // Adds the rows of a batch to `out`. REQUIRES: the types of its columns fit (TypeMismatch).
  void Append(const ArrowBatch& batch, BlockResult& out) const;

 private:
  class Filler;

  const RowLayout& layout_;
  const std::vector<size_t> column_of_;
  const std::vector<size_t> weights_of_;
  const bool labels_optional_;
  const Crossings crossings_;
  const SignedLogs logs_;
  const std::vector<CellConverter> converters_;  // By column of the layout.
  const ColumnSpec weight_;                      // What the weights of lists are read as.
  const CellConverter weight_converter_;
  bool has_lists_ = false;
};

}  // namespace dt::worker
