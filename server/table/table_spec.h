// The specification of a table as its servers need it.
#pragma once

#include <string>

#include "common/base/float_formats.h"
#include "common/base/ids.h"
#include "common/specs/init.h"
#include "common/specs/row_life.h"
#include "ops/update/update.h"
#include "server/life/life_spec.h"

namespace dt::server {

struct TableSpec {
  std::string name;
  TableId id;
  uint32_t dim = 0;
  InitSpec init;
  OptimizerSpec optimizer;
  bool scheduled = true;  // The lr_scale of pushes applies.
  EvalDefault eval_default = EvalDefault::kInitial;
  uint64_t seed = 0;
  FloatFormat wire = FloatFormat::kFp32;   // Format of values and gradients in messages.
  FloatFormat dtype = FloatFormat::kFp32;  // Format of stored values: kFp32 or kBf16.
  bool all_in_memory = false;              // No row is evicted to disk.
  LifeSpec life;
  bool on_worker = false;  // The rows are on workers, not here.

  uint32_t state() const { return StateFloats(optimizer, dim); }
};

}  // namespace dt::server
