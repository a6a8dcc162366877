#include "common/wire/control.h"

#include <array>

#include "common/base/check.h"

namespace dt {

std::string_view NameOf(Role role) {
  switch (role) {
    case Role::kScheduler:
      return "scheduler";
    case Role::kServer:
      return "server";
    case Role::kWorker:
      return "worker";
  }
  DT_UNREACHABLE();
}

std::string_view NameOf(const ControlMessage& message) {
  static constexpr std::array<std::string_view, std::variant_size_v<ControlMessage>> kNames = {
      "Join",    "DataReady", "Ready",         "Heartbeat",    "OrderDone", "Failed", "Leaving",
      "KvPut",   "KvGet",     "StatusRequest", "Welcome",      "Refused",   "Start",  "Order",
      "KvValue", "Stop",      "StatusReply",   "SplitRequest", "Split",     "Saved",  "Kept"};
  return kNames[message.index()];
}

}  // namespace dt
