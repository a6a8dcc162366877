// The main loop of a server or worker: it handles the scheduler's messages one after the other
// until something ends the role.
#pragma once

#include <functional>

#include "common/control/control_link.h"

namespace dt {

struct RoleLoop {
  // Called before each wait; an error ends the role.
  std::function<Status()> turn;
  // The longest wait for the next message.
  std::function<Duration()> until_next_turn;
  std::function<Status(ControlMessage message)> take;
};

// Returns the error that ended the role; never OK.
Status RunRole(ControlLink& link, const RoleLoop& loop);

}  // namespace dt
