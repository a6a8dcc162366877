#include "common/control/role_loop.h"

namespace dt {

Status RunRole(ControlLink& link, const RoleLoop& loop) {
  for (;;) {
    DT_TRY_STATUS(loop.turn());
    Result<ControlMessage> message =
        link.Receive(loop.until_next_turn(), ControlLink::Orders::kBegin);
    if (message.ok()) {
      DT_TRY_STATUS(loop.take(*std::move(message)));
    } else if (message.status().code() != StatusCode::kDeadlineExceeded) {
      return message.status();
    }
  }
}

}  // namespace dt
