#include "common/metrics/activity.h"

#include <fmt/format.h>

namespace dt {

std::string TextOf(const Doing& doing) {
  if (doing.what.empty()) return "";
  const std::string of = doing.step == kNoStep ? "" : fmt::format(" of step {}", doing.step);
  return fmt::format("{}{}{}", doing.waits ? "waits for " : "", doing.what, of);
}

}  // namespace dt
