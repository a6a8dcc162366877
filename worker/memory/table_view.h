// Where a table on the worker is for the current slice or step.
#pragma once

#include <cstdint>
#include <span>

namespace dt::worker {

struct TableView {
  void* rows = nullptr;  // f32 [room, dim + state], on the table's device.
  int64_t room = 0;
  // For each distinct key of the slice or step: the number of its row, and, if the row is updated,
  // the steps since its last update. In host memory.
  std::span<const uint32_t> numbers, steps_since_update;
};
// For each table of the graph; empty for tables on servers.
using TableViews = std::span<const TableView>;

}  // namespace dt::worker
