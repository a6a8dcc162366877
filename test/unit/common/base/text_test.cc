#include "common/base/text.h"

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(Text, LikelySpellingIsNearAndOnlyNear) {
  const std::vector<std::string> words = {"shards", "servers", "lr", "memory"};
  EXPECT_EQ(LikelySpelling("shard", words), "shards");
  // Two swapped letters count as one mistake.
  EXPECT_EQ(LikelySpelling("sevrers", words), "servers");
  EXPECT_EQ(LikelySpelling("lt", words), "lr");
  EXPECT_EQ(LikelySpelling("optimizer", words), "");
  EXPECT_EQ(DidYouMean("memroy", words), "; did you mean \"memory\"?");
  EXPECT_EQ(DidYouMean("xyz", words), "");
}

TEST(Text, SplittingAndJoiningAreInverse) {
  for (const std::string text : {"", "a", "a,b", ",", "a,,b,"}) {
    const std::vector<std::string_view> views = SplitText(text, ',');
    EXPECT_EQ(JoinText(std::vector<std::string>(views.begin(), views.end()), ","), text);
  }
  EXPECT_EQ(SplitText("", ',').size(), 1u);
}

TEST(Text, Patterns) {
  struct Case {
    const char *text, *pattern;
    bool matches;
  };
  const Case cases[] = {
      {"C12", "C*", true},     {"C", "C*", true},       {"I1", "C*", false},  {"C1", "C?", true},
      {"C12", "C?", false},    {"", "", true},          {"", "*", true},      {"a", "", false},
      {"abcbc", "a*bc", true}, {"abcb", "a*bc", false}, {"x*y", "x*y", true}, {"ab", "**b", true},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(MatchesPattern(c.text, c.pattern), c.matches) << c.text << " ~ " << c.pattern;
  }
}

TEST(Text, PrintableTextSteersNoTerminal) {
  const std::pair<std::string, std::string> cases[] = {
      {"plain, \"quoted\" \\ \n next", "plain, \"quoted\" \\ \n next"},
      {"\x1b[31m\r\t", "\\x1b[31m\\x0d\\x09"},
      {std::string("\0\x7f", 2), "\\x00\\x7f"},
      // A C1 control character, then the first code point after those.
      {"\xc2\x9b\x32J \xc2\xa0", "\\xc2\\x9b2J \xc2\xa0"},
      {"\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x90\xa6", "\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x90\xa6"},
      // Bytes that are not UTF-8, and an overlong encoding.
      {"\x9b\xff\xc0\xaf", "\\x9b\\xff\\xc0\\xaf"},
      {"\xe0\x80\xaf\xed\xa0\x80", "\\xe0\\x80\\xaf\\xed\\xa0\\x80"},
      {"\xf4\x90\x80\x80\xe2\x86", "\\xf4\\x90\\x80\\x80\\xe2\\x86"}};
  for (const auto& [text, printed] : cases) EXPECT_EQ(Printable(text), printed);
}

TEST(Text, Numbers) {
  EXPECT_EQ(HexOf(0xabcull), "0000000000000abc");
  EXPECT_EQ(BytesText(3), "3 B");
  EXPECT_EQ(BytesText(12 << 10), "12 KiB");
  EXPECT_EQ(BytesText(3ull << 29), "1.5 GiB");
}

}  // namespace
}  // namespace dt
