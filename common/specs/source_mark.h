// Where in a file the user wrote something. For errors that are found after the file was read.
#pragma once

#include <string>

#include "common/base/fields.h"

namespace dt {

// Lines count from 1; 0: unknown.
struct SourceMark {
  std::string file;
  int line = 0;
  DT_FIELDS(file, line)
  friend bool operator==(const SourceMark&, const SourceMark&) = default;
};

}  // namespace dt
