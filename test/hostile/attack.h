// What an attacker does once: seeded, short, and against loopback addresses of processes that the
// test itself has started.
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

// Where a job can be reached.
struct Targets {
  std::vector<uint16_t> ports;     // TCP.
  std::vector<std::string> names;  // Abstract sockets of shared memory.
  Network* network = nullptr;      // With the job's keys.
};

struct Attack {
  const char* name;
  void (*run)(Random& random, const Targets& targets);
};

std::span<const Attack> TcpAttacks();
std::span<const Attack> ShmAttacks();
// Of somebody who has the job's keys, and whose messages keep the framing.
std::span<const Attack> MemberAttacks();

template <class T>
const T& OneOf(const std::vector<T>& all, Random& random) {
  return all[random() % all.size()];
}
std::string RandomBytes(Random& random, size_t size);
// A request for rows of a tiny job (tiny_job.h), of a generation that is no more: refused once it
// has been understood.
Frames StaleRequest(Random& random, size_t rows_of_shard);
// Reads rows before the first step, as anybody may.
PullRequest FirstRows(Random& random, size_t rows_of_shard);
// Flips bits, cuts, repeats or inserts, at one to four places.
std::string Damaged(std::string bytes, Random& random);

}  // namespace dt::test
