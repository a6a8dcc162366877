// Where the log of one executor is, and whether it is a new one or is continued.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"
#include "common/cluster/taken_parts.h"

namespace dt::server {

struct LogLocation {
  std::string dir;
  uint32_t executor = 0;
  bool sync = false;
  // What the log in `dir` continues; such a log is read back first. Without a base, a new log
  // begins.
  struct Base {
    Step step = 0;
    std::string folder;  // The checkpoint's; empty: no rows.
    uint64_t first_segment = 1;
    std::optional<TakenParts> taken = {};  // See RowsToLoad.
  };
  std::optional<Base> base = {};
};

}  // namespace dt::server
