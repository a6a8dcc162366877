// Single attacks of hostile tests. Each is seeded, short, and aimed at loopback addresses of
// processes that the test itself has started.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "common/net/socket.h"
#include "common/wire/data.h"

namespace dt::test {

using Random = std::mt19937_64;

// Addresses at which a job can be attacked.
struct Targets {
  std::vector<uint16_t> ports;     // TCP ports.
  std::vector<std::string> names;  // Names of abstract sockets of shared memory.
  Network* network = nullptr;      // A network that has the job's keys.
};

struct Attack {
  const char* name;
  void (*run)(Random& random, const Targets& targets);
};

std::span<const Attack> TcpAttacks();
std::span<const Attack> ShmAttacks();
// Attacks by a peer that has the job's keys and keeps to the framing.
std::span<const Attack> MemberAttacks();

template <class T>
const T& OneOf(const std::vector<T>& all, Random& random) {
  return all[random() % all.size()];
}
std::string RandomBytes(Random& random, size_t size);
// A request for rows of a tiny job (tiny_job.h) with an old generation: servers decode it, then
// refuse it.
Frames StaleRequest(Random& random, size_t rows_of_shard);
// A request for rows before the first step, which servers answer to everybody.
PullRequest FirstRows(Random& random, size_t rows_of_shard);
// Flips bits, cuts, repeats or inserts bytes at one to four offsets.
std::string Damaged(std::string bytes, Random& random);

}  // namespace dt::test
