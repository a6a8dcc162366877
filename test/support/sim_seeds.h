// The seeds of a simulation: `count` fixed ones, the one in DT_SIM_SEED, or as many as DT_SIM_RUNS
// says.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

namespace dt {

inline std::vector<uint64_t> SimSeeds(uint64_t count = 20) {
  if (const char* seed = std::getenv("DT_SIM_SEED")) return {std::stoull(seed)};
  const char* runs = std::getenv("DT_SIM_RUNS");
  std::vector<uint64_t> seeds(runs != nullptr ? std::stoull(runs) : count);
  std::iota(seeds.begin(), seeds.end(), 1);
  return seeds;
}

inline bool RepeatsOneSeed() { return std::getenv("DT_SIM_SEED") != nullptr; }

// For failure messages.
inline std::string Repeat(uint64_t seed) {
  return "repeat with DT_SIM_SEED=" + std::to_string(seed);
}

}  // namespace dt
