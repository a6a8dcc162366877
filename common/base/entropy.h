// The operating system's randomness: for what must differ between two starts of a process, and for
// nothing that a result depends on.
#pragma once

#include <cstdint>

namespace dt {

// Any thread.
uint64_t EntropyBits();

}  // namespace dt
