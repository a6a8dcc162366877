#include "common/schema/job_schema.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/config/reader/key_table.h"
#include "common/metrics/metrics.h"

namespace dt {
namespace {

using nlohmann::json;

std::string DefOf(std::string_view section) {
  return section.empty() ? "job" : std::string(section);
}

TEST(Schema, HasExactlyTheKeysOfTheTable) {
  const json schema = json::parse(JobSchemaJson());
  std::set<std::string> in_table, in_schema;
  for (const KeySpec& key : AllKeys()) {
    if (key.name != "*") in_table.insert(DefOf(key.section) + " " + std::string(key.name));
  }
  for (const auto& [section, def] : schema["$defs"].items()) {
    for (const auto& [name, unused] : def["properties"].items()) {
      in_schema.insert(std::string(section).append(" ").append(name));
    }
  }
  EXPECT_EQ(in_schema, in_table);
  EXPECT_EQ(schema["$ref"], "#/$defs/job");
}

TEST(Schema, ClosedSectionsAreClosed) {
  const json defs = json::parse(JobSchemaJson())["$defs"];
  EXPECT_EQ(defs["train"]["additionalProperties"], false);
  EXPECT_EQ(defs["node"]["additionalProperties"], true);
  EXPECT_EQ(defs["job"]["required"], (json{"job", "data", "model"}));
}

TEST(Schema, EveryReferenceIsDefined) {
  const std::string text = JobSchemaJson();
  const json defs = json::parse(text)["$defs"];
  const std::string before = "\"#/$defs/";
  for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1)) {
    const size_t begin = at + before.size();
    EXPECT_TRUE(defs.contains(text.substr(begin, text.find('"', begin) - begin)));
  }
}

TEST(KeyTable, DefaultsAreValuesOfTheirKeys) {
  for (const KeySpec& key : AllKeys()) {
    if (key.type != KeyType::kChoice || key.fallback.empty() || key.fallback == kRequired) continue;
    const std::vector<std::string> values = Alternatives(key.values);
    EXPECT_NE(std::find(values.begin(), values.end(), key.fallback), values.end())
        << key.section << "." << key.name;
  }
}

std::filesystem::path Source() {
  const char* source = std::getenv("DT_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(Schema, TheFileBesideTheConfigsIsWhatTheProgramPrints) {
  EXPECT_EQ(TextOf(Source() / "configs/job.schema.json"), JobSchemaJson() + "\n")
      << "make it again: dovetail schema > configs/job.schema.json";
}

// Editors with yaml-language-server use this line to complete and check keys.
TEST(Schema, EveryConfigNamesIt) {
  for (const auto& entry : std::filesystem::directory_iterator(Source() / "configs")) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string first = "# yaml-language-server: $schema=job.schema.json\n";
    EXPECT_TRUE(TextOf(entry.path()).starts_with(first)) << entry.path();
  }
}

TEST(KeyTable, TheDocumentTellsEveryKey) {
  const std::string text = TextOf(Source() / "docs/job-file.md");
  std::set<std::string_view> sections;
  for (const KeySpec& key : AllKeys()) sections.insert(key.section);
  for (const std::string_view section : sections) {
    const std::string table = KeysMarkdown(section);
    EXPECT_NE(text.find(table), std::string::npos) << "docs/job-file.md lacks this, as it stands:\n"
                                                   << table;
  }
}

// The table of losses names a metric if and only if the loss has it.
TEST(Metrics, TheDocumentTellsThoseOfEachLoss) {
  const std::string text = TextOf(Source() / "docs/job-file.md");
  for (const std::string& loss : Alternatives(KeyOf("loss", "type").values)) {
    const size_t begin = text.find("\n| `" + loss + "` | ");
    ASSERT_NE(begin, std::string::npos) << "docs/job-file.md has no metrics of " << loss;
    const std::string row = text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1);
    for (const MetricInfo& metric : AllMetrics()) {
      const bool told = row.find("`" + std::string(metric.name) + "`") != std::string::npos;
      EXPECT_EQ(told, metric.IsOf(loss, true)) << metric.name << " in\n" << row;
    }
  }
}

TEST(Optimizers, TheDocumentTellsEachOfThem) {
  const std::string table = OptimizersMarkdown();
  EXPECT_NE(TextOf(Source() / "docs/job-file.md").find(table), std::string::npos)
      << "docs/job-file.md lacks this, as it stands:\n"
      << table;
}

}  // namespace
}  // namespace dt
