#include "common/config/reader/yaml_parse.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

std::string ProblemIn(const std::string& text) {
  Problems problems;
  ParseYaml(text, "f.yaml", 1, problems);
  const Status status = problems.ToStatus("f.yaml");
  const std::string message(MessageOf(status));
  return message.substr(0, message.find('\n'));
}

TEST(YamlParse, EveryNodeKnowsItsLine) {
  Problems problems;
  const ConfigNode root = ParseYaml("a: 1\nb:\n  - x\n  - {c: \"2\"}\n", "f.yaml", 1, problems);
  ASSERT_TRUE(problems.empty());
  EXPECT_EQ(root.Find("a")->mark.line, 1);
  EXPECT_FALSE(root.Find("a")->quoted);
  const ConfigNode& list = *root.Find("b");
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[0].mark.line, 3);
  EXPECT_EQ(list.items[1].Find("c")->mark.line, 4);
  EXPECT_TRUE(list.items[1].Find("c")->quoted);
  EXPECT_EQ(root.key_marks[1].line, 2);
}

TEST(YamlParse, AnchorsAreWrittenOut) {
  Problems problems;
  const ConfigNode root = ParseYaml("a: &t {dim: 4}\nb: *t\n", "f.yaml", 1, problems);
  ASSERT_TRUE(problems.empty());
  EXPECT_EQ(root.Find("b")->Find("dim")->text, "4");
}

TEST(YamlParse, RefusesWhatTheLibraryTakes) {
  EXPECT_EQ(ProblemIn("a:\n  b: 1\n  c: 2\n  b: 3\n"),
            "f.yaml:4: a.b: duplicate key, already written in line 2");
  EXPECT_EQ(ProblemIn("[1, 2]: x\n"), "f.yaml:1: found a list as a key, expected a word");
  EXPECT_EQ(ProblemIn("a: 1\n---\nb: 2\n"),
            "f.yaml:1: found several YAML documents (---), expected one");
}

TEST(YamlParse, BrokenTextNamesTheLine) {
  EXPECT_EQ(ProblemIn("a: [1\nb: 2\n"),
            "f.yaml:2: is not valid YAML, here or just above: a comma or a closing ] is missing");
  EXPECT_EQ(
      ProblemIn("a:\n   b: 1\n  c: 2\n"),
      "f.yaml:3: is not valid YAML, here or just above: a line has more or less indent than its "
      "peers");
  EXPECT_EQ(ProblemIn("a:\n  b c\n  d: 2\n"),
            "f.yaml:3: is not valid YAML, here or just above: a colon is missing or too many (key: "
            "value)");
  EXPECT_EQ(ProblemIn("a: [${DIR}/b.csv]\n"),
            "f.yaml:1: is not valid YAML: inside [...] and {...}, a text with ${...} needs quotes");
  EXPECT_EQ(ProblemIn("a:\n\tb: 2\n"),
            "f.yaml:2: the line is indented with a tab, expected blanks");
  EXPECT_EQ(ProblemIn("a: *x\n"),
            "f.yaml:1: is not valid YAML: the referenced anchor is not defined");
}

// Each line doubles the line before it: 2^40 values if expanded.
TEST(YamlParse, AliasesCannotExplode) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    text += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_EQ(ProblemIn(text), "f.yaml:1: holds more than 100000 values");
}

// 4 MB that are expanded 100 times, as a text and in a map.
TEST(YamlParse, AliasesOfLongTextsCannotExplode) {
  for (const std::string& anchor :
       {"&a " + std::string(4'000'000, 'x'),
        "&a {" + std::string(1000, 'x') + ": " + std::string(4'000'000, 'y') + "}"}) {
    std::string text = "a: " + anchor + "\nb: [";
    for (int i = 0; i < 100; ++i) text += "*a, ";
    EXPECT_EQ(ProblemIn(text + "]\n"),
              "f.yaml:1: holds more than 64 MiB of text with its aliases written out");
  }
}

TEST(YamlParse, DepthIsBounded) {
  EXPECT_NE(ProblemIn(std::string(100000, '[')), "");
  EXPECT_NE(ProblemIn(std::string(100000, '{')), "");
}

}  // namespace
}  // namespace dt
