#include "common/storage/json_file.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

using testing::HasSubstr;

TEST(JsonFile, WhatIsNotJsonIsASentenceWithTheFile) {
  const test::ScratchFolder temp;
  const std::string deep(1'000'000, '[');
  const std::string odd[] = {"",
                             "{",
                             "nul",
                             "{\"a\":}",
                             "\"\xff\"",
                             "[1e999]",
                             "{} {}",
                             deep,
                             deep + std::string(1'000'000, ']'),
                             std::string(17 << 20, ' ')};
  for (const std::string& text : odd) {
    std::ofstream(temp / "f.json") << text;
    const Result<Json> json = ReadJsonFile(temp / "f.json");
    EXPECT_EQ(json.status().code(), StatusCode::kOutOfRange) << text.substr(0, 20);
    EXPECT_THAT(ToText(json.status()), HasSubstr("f.json"));
  }
}

TEST(JsonFile, DepthIsCountedOutsideOfTextsAlone) {
  EXPECT_TRUE(
      ParseJson("[\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\"]", "x").ok());
  EXPECT_TRUE(ParseJson(std::string(64, '[') + std::string(64, ']'), "x").ok());
  EXPECT_FALSE(ParseJson(std::string(65, '[') + std::string(65, ']'), "x").ok());
}

TEST(JsonFile, MembersOfAnyKindAreRead) {
  for (const char* text :
       {"null", "[]", "\"a\"", "3", R"({"t": 3, "n": "x", "c": -1})",
        R"({"t": null, "n": {}, "c": []})", R"({"t": ["x"], "n": true, "c": 1.5})"}) {
    const Json json = *ParseJson(text, "x");
    EXPECT_EQ(TextOf(json, "t", "-"), "-") << text;
    EXPECT_EQ(NumberOf(json, "n"), 0.0) << text;
    EXPECT_EQ(CountOf(json, "c"), 0u) << text;
    EXPECT_TRUE(MemberOf(json, "absent").is_null()) << text;
  }
  const Json json = *ParseJson(R"({"t": "x", "n": -2.5, "c": 7})", "x");
  EXPECT_EQ(TextOf(json, "t"), "x");
  EXPECT_EQ(NumberOf(json, "n"), -2.5);
  EXPECT_EQ(CountOf(json, "c"), 7u);
}

TEST(JsonFile, PrintedItIsAscii) {
  EXPECT_EQ(PrintableJson(*ParseJson("[\"\\u001b\x7f\xc2\x9b\xc3\xa9\"]", "x")),
            "[\n  \"\\u001b\\u007f\\u009b\\u00e9\"\n]");
}

}  // namespace
}  // namespace dt
