#include "common/base/log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

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

using Json = nlohmann::json;

// The line that `log` writes, which must be one JSON object.
template <class Log>
Json JsonOf(LogLevel level, const Log& log) {
  InitLog({.level = level, .role = "worker-3"});
  SetLogFormat(LogFormat::kJson);
  testing::internal::CaptureStderr();
  log();
  const std::string line = testing::internal::GetCapturedStderr();
  const Json json = Json::parse(line, nullptr, false);
  EXPECT_TRUE(json.is_object()) << line;
  return json;
}

TEST(Log, NumbersAreNumbersInJson) {
  const Json line = JsonOf(LogLevel::kInfo, [] {
    LogInfo("progress", {{"step", 12u},
                         {"percent", Rounded(100.0 / 3, 1)},
                         {"rate", 1e-9},
                         {"again", true},
                         {"loss", std::nan("")},
                         {"left", std::numeric_limits<double>::infinity()},
                         {"text", "12"}});
  });
  EXPECT_EQ(line["role"], "worker-3");
  EXPECT_EQ(line["step"], 12);
  EXPECT_EQ(line["percent"], 33.3);
  EXPECT_EQ(line["rate"], 1e-9);
  EXPECT_EQ(line["again"], true);
  EXPECT_TRUE(line["loss"].is_null());
  EXPECT_TRUE(line["left"].is_null());
  EXPECT_EQ(line["text"], "12");
}

TEST(Log, AnyBytesAreOneJsonString) {
  const std::string value = std::string("\0\t\"\\", 4) + "\xff\u00e9";
  const Json line = JsonOf(LogLevel::kWarn, [&] { LogWarn("event", {{"value", value}}); });
  EXPECT_EQ(line["value"], "\\x00\\x09\"\\\\xff\u00e9");
}

TEST(Log, TheEndIsWrittenAtEveryLevel) {
  const Json line = JsonOf(LogLevel::kOff, [] { LogEnd("error", {{"what", "a disk is full"}}); });
  EXPECT_EQ(line["level"], "error");
  EXPECT_EQ(line["what"], "a disk is full");
}

}  // namespace
}  // namespace dt
