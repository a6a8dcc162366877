// Goal: any bytes as a job file either load or are answered in sentences.
#include <array>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

constexpr std::array<std::string_view, 24> kPieces = {
    "{", "}",  "[",  "]",  ":", ": ", "-", "\n", "\n  ", "\t",    "\"",   "'",
    "#", "&a", "*a", "!!", "|", "${", "}", "~",  "-1",   "1e400", "\xff", "\xc3\x28"};

// Removes, repeats or inserts a run of bytes. A pure function of the number.
std::string Mutated(std::string_view good, uint64_t number) {
  std::string text(good);
  const PhiloxBlock count = Philox(2026, number, 0);
  for (uint32_t i = 0; i <= count[0] % 4; ++i) {
    const PhiloxBlock r = Philox(2026, number, i + 1);
    const size_t at = r[0] % text.size();
    const size_t length = std::min<size_t>(1 + r[1] % 12, text.size() - at);
    if (r[2] % 3 == 0) {
      text.erase(at, length);
    } else if (r[2] % 3 == 1) {
      text.insert(at, text.substr(at, length));
    } else {
      text.insert(at, kPieces[r[3] % kPieces.size()]);
    }
    if (text.empty()) text = "x";
  }
  return text;
}

TEST(Mutations, LoadOrAreAnsweredInSentences) {
  const TempDir dir;
  int refused = 0;
  for (uint64_t number = 0; number < 1500; ++number) {
    const std::string text = Mutated(kGoodJob, number);
    const Result<JobConfig> job = LoadJob(dir.Write("job.yaml", text), {});
    if (job.ok()) continue;
    ++refused;
    const std::string message(MessageOf(job.status()));
    EXPECT_TRUE(message.ends_with(", nothing started")) << text << "\n" << message;
    EXPECT_EQ(ExitCodeOf(job.status()), 2) << text;
    EXPECT_EQ(message.find("exception"), std::string::npos) << text << "\n" << message;
  }
  EXPECT_GT(refused, 500);
}

TEST(Mutations, OverridesToo) {
  const TempDir dir;
  const std::string file = dir.Write("job.yaml", kGoodJob);
  for (uint64_t number = 0; number < 500; ++number) {
    const std::string flag = Mutated("model.graph.deep.units=[400, 400]", number);
    const Result<JobConfig> job = LoadJob(file, {.overrides = {flag}, .auto_slices = 1});
    EXPECT_TRUE(job.ok() || ExitCodeOf(job.status()) == 2) << flag;
  }
}

}  // namespace
}  // namespace dt
