// The values of rows that were never pushed: a pure function of (seed, table, key, column), so they
// do not depend on which server creates a row, nor on when. Immutable; any thread.
#pragma once

#include <span>

#include "common/base/ids.h"
#include "common/specs/init.h"

namespace dt {

class InitialRows {
 public:
  InitialRows(const InitSpec& init, uint64_t seed, TableId table);
  void Fill(Key key, std::span<float> values) const;

 private:
  const InitSpec init_;
  const uint64_t stream_;
};

}  // namespace dt
