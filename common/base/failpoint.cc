#include "common/base/failpoint.h"

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

#include "common/base/immortal.h"
#include "common/base/text.h"

namespace dt {
namespace {

struct Armed {
  std::string place;
  uint64_t number = 0;
  std::string file;
  bool hangs = false;
};

std::optional<Armed>& TheArmed() {
  static Immortal<std::optional<Armed>> armed;
  return *armed;
}

thread_local FailpointHandler handler_here;

void DieOrHang(const Armed& armed) {
  const int made = open(armed.file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (made < 0) return;
  close(made);
  if (!armed.hangs) std::raise(SIGKILL);
  for (;;) pause();
}

}  // namespace

void PassFailpoint(std::string_view place, uint64_t number) {
  const std::optional<Armed>& armed = TheArmed();
  if (armed.has_value() && armed->number == number && armed->place == place) DieOrHang(*armed);
  if (handler_here) handler_here(place, number);
}

void ArmFailpoint(std::string_view process) {
  const char* const text = std::getenv("DOVETAIL_FAILPOINT");
  if (text == nullptr) return;
  const std::vector<std::string_view> parts = SplitText(text, ':');
  const bool hangs = parts.size() == 5 && parts[4] == "hangs";
  if ((parts.size() != 4 && !hangs) || parts[0] != process) return;
  Armed armed{.place = std::string(parts[1]), .file = std::string(parts[3]), .hangs = hangs};
  const std::string_view number = parts[2];
  std::from_chars(number.data(), number.data() + number.size(), armed.number);
  TheArmed() = std::move(armed);
}

void SetFailpointHandler(FailpointHandler handler) { handler_here = std::move(handler); }

}  // namespace dt
