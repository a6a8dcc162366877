// The seeds of a simulation: `count`, or DT_SIM_RUNS, from 1 or DT_SIM_FIRST on; or only
// DT_SIM_SEED.
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
  const char* first = std::getenv("DT_SIM_FIRST");
  std::vector<uint64_t> seeds(runs != nullptr ? std::stoull(runs) : count);
  std::iota(seeds.begin(), seeds.end(), first != nullptr ? std::stoull(first) : 1);
  return seeds;
}

inline bool RepeatsOneSeed() { return std::getenv("DT_SIM_SEED") != nullptr; }

// Part of failure messages: how to repeat a run.
inline std::string Repeat(uint64_t seed) {
  return "repeat with DT_SIM_SEED=" + std::to_string(seed);
}

}  // namespace dt
