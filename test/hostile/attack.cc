#include "test/hostile/attack.h"

namespace dt::test {

std::string RandomBytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& b : bytes) b = static_cast<char>(random());
  return bytes;
}

std::string Damaged(std::string bytes, Random& random) {
  for (uint64_t times = 1 + random() % 4; times > 0 && !bytes.empty(); --times) {
    const size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, RandomBytes(random, 1 + random() % 16));
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, 1 + random() % 64));
        break;
      case 5:
        bytes.insert(at, std::string(1 + random() % 10'000, "[{\"0-\xff"[random() % 6]));
        break;
    }
  }
  return bytes;
}

}  // namespace dt::test
