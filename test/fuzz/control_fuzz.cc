// A control message is refused, or encoding it again gives bytes that decode to the same message.
#include <cstdint>
#include <span>
#include <string>

#include "common/base/check.h"
#include "common/control/messages.h"

namespace dt {
namespace {

void OneInput(std::span<const std::byte> bytes) {
  const Result<ControlMessage> message = DecodeControl(bytes);
  if (!message.ok()) return;
  const std::string once = EncodeControl(*message);
  const Result<ControlMessage> again = DecodeControl(std::as_bytes(std::span(once)));
  DT_CHECK(again.ok());
  DT_CHECK(EncodeControl(*again) == once);
}

}  // namespace
}  // namespace dt

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dt::OneInput(std::as_bytes(std::span(data, size)));
  return 0;
}
