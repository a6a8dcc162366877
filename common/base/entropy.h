// Random bits of the operating system, for values that must differ between two starts of a process.
// No result of training depends on them.
#pragma once

#include <cstdint>

namespace dt {

// Any thread.
uint64_t EntropyBits();

}  // namespace dt
