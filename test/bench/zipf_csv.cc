// Prints samples for stress runs: a label, and columns of ids from one Zipf distribution, so that a
// few keys are in most samples and most keys are seen once. Usage: zipf_csv ROWS COLUMNS KEYS
// EXPONENT SEED
//
// Ids are hashes of ranks (cli/bench/zipf.h). The label depends on hidden weights of the ids.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/core.h>

#include "cli/bench/zipf.h"
#include "common/base/hash.h"
#include "common/base/philox.h"

namespace {

double WeightOf(uint64_t key) {
  return static_cast<double>(dt::MixBits(key ^ 77) >> 11) * 0x1.0p-53 - 0.5;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: zipf_csv ROWS COLUMNS KEYS EXPONENT SEED\n", stderr);
    return 2;
  }
  const uint64_t rows = std::strtoull(argv[1], nullptr, 10);
  const uint64_t columns = std::strtoull(argv[2], nullptr, 10);
  const dt::Zipf zipf(std::strtod(argv[3], nullptr), std::strtod(argv[4], nullptr));
  uint64_t state = dt::MixBits(std::strtoull(argv[5], nullptr, 10) + 1);
  const auto uniform = [&state] {
    state += 0x9e3779b97f4a7c15ull;
    return static_cast<double>(dt::MixBits(state) >> 11) * 0x1.0p-53;
  };
  std::string text = "click";
  for (uint64_t c = 0; c < columns; ++c) text += fmt::format(",c{}", c);
  text += '\n';
  for (uint64_t row = 0; row < rows; ++row) {
    const size_t label_at = text.size();
    text += '0';
    double score = -1;
    for (uint64_t c = 0; c < columns; ++c) {
      const uint64_t key = dt::MixBits(zipf.Draw(uniform));
      score += 2 * WeightOf(key);
      fmt::format_to(std::back_inserter(text), ",{}", key);
    }
    if (uniform() * (1 + std::exp(-score)) < 1) text[label_at] = '1';
    text += '\n';
    if (text.size() < 1 << 20 && row + 1 < rows) continue;
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) return 1;
    text.clear();
  }
  return 0;
}
