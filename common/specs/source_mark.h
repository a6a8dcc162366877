// Where a person wrote something, for errors that appear later than reading the file.
#pragma once

#include <string>

#include "common/base/fields.h"

namespace dt {

// Lines count from 1; 0 means that the line is not known.
struct SourceMark {
  std::string file;
  int line = 0;
  DT_FIELDS(file, line)
  friend bool operator==(const SourceMark&, const SourceMark&) = default;
};

}  // namespace dt
