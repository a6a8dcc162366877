// The rules by which the rows of one table in one shard are made and expire.
//
//   never pushed ──n-th push──▶ a row ──no push for that long──▶ expired: as if never pushed
//
// RowAdmission decides the first transition, RowExpiry the second.
#pragma once

#include <cstdint>

#include "common/base/clock.h"
#include "common/base/ids.h"

namespace dt::server {

struct LifeSpec {
  uint32_t admission_pushes = 1;  // 1: the first push makes the row.
  uint64_t sketch_bytes = 0;      // Size of one shard's sketch.
  Step expiry_steps = 0;          // 0: rows never expire. At most one of steps and time is set.
  Duration expiry_time{};         // Zero: rows never expire.
  bool freeze = false;            // Pushes change nothing; nothing expires.
};

}  // namespace dt::server
