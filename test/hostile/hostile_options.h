// Duration and seed of hostile tests: see test/README.md.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "common/base/clock.h"

namespace dt::test {

inline uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}
// Duration of each test. Zero means a single round, or a few hundred trials.
inline Duration HostileTime() { return seconds(NumberFromEnvironment("DT_HOSTILE_SECONDS", 0)); }
inline uint64_t HostileSeed() { return NumberFromEnvironment("DT_HOSTILE_SEED", 1); }

}  // namespace dt::test
