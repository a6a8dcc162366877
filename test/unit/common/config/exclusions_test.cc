// Goal: the reader refuses all pairs of keys that docs/job-file.md calls incompatible. Method: the
// table of that document is read and tested pair by pair.
#include <cstdlib>
#include <fstream>
#include <regex>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "test/unit/common/config/temp_job.h"

namespace dt {
namespace {

// One row of the table below the heading: the settings in its first two cells.
struct Exclusion {
  std::vector<std::string> these, others;
};

std::vector<std::string> SettingsIn(const std::string& cell) {
  static const std::regex kQuoted("`([^`]*)`");
  std::vector<std::string> settings;
  for (std::sregex_iterator at(cell.begin(), cell.end(), kQuoted), end; at != end; ++at) {
    std::string text = (*at)[1];
    text = std::regex_replace(text, std::regex("tables\\.NAME"), "tables.item");
    settings.push_back(std::regex_replace(text, std::regex("graph\\.NAME"), "graph.deep"));
  }
  return settings;
}

std::vector<Exclusion> DocumentedExclusions() {
  const char* source = std::getenv("DT_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) + "/docs/job-file.md");
  std::vector<Exclusion> rows;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) inside = line == "## What excludes what";
    if (!inside || !line.starts_with("| `")) continue;
    const std::vector<std::string_view> cells = SplitText(line, '|');
    rows.push_back({SettingsIn(std::string(cells[1])), SettingsIn(std::string(cells[2]))});
  }
  return rows;
}

TEST(Exclusions, EachDocumentedPairIsRefusedInASentence) {
  const std::vector<Exclusion> rows = DocumentedExclusions();
  ASSERT_GE(rows.size(), 10u);
  const auto key_of = [](const std::string& setting) {
    return setting.substr(0, setting.find('='));
  };
  for (const Exclusion& row : rows) {
    ASSERT_EQ(row.these.size(), 1u);
    ASSERT_FALSE(row.others.empty()) << row.these[0];
    for (const std::string& other : row.others) {
      const std::string said = ProblemsOf(kGoodJob, {.overrides = {row.these[0], other}});
      EXPECT_NE(said, "") << row.these[0] << " with " << other;
      const bool named = said.find(key_of(other)) != std::string::npos ||
                         said.find(key_of(row.these[0])) != std::string::npos;
      EXPECT_TRUE(named) << said;
    }
  }
}

}  // namespace
}  // namespace dt
