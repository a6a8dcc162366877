// Where the log of one executor is: one to begin, or to go on with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/ids.h"

namespace dt::server {

struct LogLocation {
  std::string dir;
  uint32_t executor = 0;
  bool sync = false;
  // What the log in `dir` continues: it is read back first. Nothing: the log begins here.
  struct Base {
    Step step = 0;
    std::string folder;  // Of the checkpoint; "": no rows.
    uint64_t first_segment = 1;
  };
  std::optional<Base> base = {};
};

}  // namespace dt::server
