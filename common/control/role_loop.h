// The main loop of a server or a worker: what the scheduler sends is carried out, one thing after
// the other, until something ends the role.
#pragma once

#include <functional>

#include "common/control/control_link.h"

namespace dt {

struct RoleLoop {
  // Before each wait; not OK ends the role.
  std::function<Status()> turn;
  // How long to wait for the next message.
  std::function<Duration()> until_next_turn;
  std::function<Status(ControlMessage message)> take;
};

// Returns what ended it; never OK.
Status RunRole(ControlLink& link, const RoleLoop& loop);

}  // namespace dt
