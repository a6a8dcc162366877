// The resources that one process has used so far; part of the result file.
#pragma once

#include <cstdint>

#include "common/base/fields.h"

namespace dt {

struct ProcessStats {
  double cpu_seconds = 0;
  uint64_t peak_rss_bytes = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
  DT_FIELDS(cpu_seconds, peak_rss_bytes, bytes_sent, bytes_received)
};

}  // namespace dt
