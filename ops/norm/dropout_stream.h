// What every back end's dropout draws from: the streams of StreamKey (common/base/philox.h) for
// this purpose.
#pragma once

#include <cstdint>

namespace dt {

inline constexpr uint64_t kDropoutPurpose = 0x60f46e807a7027efull;  // HashString("dropout")

}  // namespace dt
