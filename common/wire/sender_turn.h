// The sender of a push of asynchronous training, and which of its pushes it is.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace dt {

struct SenderTurn {
  ProcessId worker;
  ViewNumber view;      // The view in the message's stamp.
  Step order = 0;       // The first step of the order that it works on.
  uint64_t number = 0;  // Counts the sender's pushes in this order and view, from 0.
  Step clock = 0;       // With this push, it has pushed its slices of every step before.
  // Every step before is complete on all shards: a push of such a step has come before.
  Step settled = 0;
  friend bool operator==(const SenderTurn&, const SenderTurn&) = default;
};

}  // namespace dt
