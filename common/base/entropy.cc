#include "common/base/entropy.h"

#include <random>

namespace dt {

uint64_t EntropyBits() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace dt
