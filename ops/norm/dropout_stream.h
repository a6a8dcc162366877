// The purpose of dropout's random streams (StreamKey in common/base/philox.h), equal on every
// device.
#pragma once

#include <cstdint>

namespace dt {

inline constexpr uint64_t kDropoutPurpose = 0x60f46e807a7027efull;  // HashString("dropout")

}  // namespace dt
