// Where a table on the worker is for the slice or step at hand.
#pragma once

#include <cstdint>
#include <span>

namespace dt::worker {

struct TableView {
  void* rows = nullptr;  // f32 [room, dim + state], on the table's device.
  int64_t room = 0;
  // By distinct key of the slice or step: the number of its row; where it is updated, the steps
  // since it last was. In host memory.
  std::span<const uint32_t> numbers, steps_since_update;
};
// By table of the graph; those on servers have none.
using TableViews = std::span<const TableView>;

}  // namespace dt::worker
