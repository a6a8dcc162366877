#include "common/base/log.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace dt {
namespace {

std::string Logged(LogFormat format, std::string_view value) {
  InitLog({.format = format, .role = ""});
  testing::internal::CaptureStderr();
  LogWarn("event", {{"value", value}});
  return testing::internal::GetCapturedStderr();
}

TEST(Log, AValueForgesNeitherALineNorColours) {
  constexpr std::string_view kValue = "a\n2026 error forged\x1b[31m\x9b";
  const std::string text = Logged(LogFormat::kText, kValue);
  EXPECT_NE(text.find("event value=\"a\\n2026 error forged\\\\x1b[31m\\\\x9b\"\n"), text.npos)
      << text;
  const std::string json = Logged(LogFormat::kJson, kValue);
  EXPECT_NE(json.find("\"value\":\"a\\n2026 error forged\\\\x1b[31m\\\\x9b\"}\n"), json.npos)
      << json;
  for (const std::string& line : {text, json}) {
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  }
}

}  // namespace
}  // namespace dt
