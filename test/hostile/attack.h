// What an attacker does once: seeded, short, and against loopback addresses of processes that the
// test itself has started.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace dt::test {

using Random = std::mt19937_64;

// Where a job can be reached.
struct Targets {
  std::vector<uint16_t> ports;     // TCP.
  std::vector<std::string> names;  // Abstract sockets of shared memory.
};

struct Attack {
  const char* name;
  void (*run)(Random& random, const Targets& targets);
};

std::span<const Attack> TcpAttacks();
std::span<const Attack> ShmAttacks();

template <class T>
const T& OneOf(const std::vector<T>& all, Random& random) {
  return all[random() % all.size()];
}
std::string RandomBytes(Random& random, size_t size);
// Flips bits, cuts, repeats or inserts, at one to four places.
std::string Damaged(std::string bytes, Random& random);

}  // namespace dt::test
