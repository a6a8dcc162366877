// A log line is one event name and key=value pairs: LogInfo("shard.moved", {{"shard", 17}, {"ms",
// 812}}). The role and the process id are added. Levels: error, a person must act; warn, the system
// recovered by itself; info, a state changed (a few per second at most); debug, off by default.
// Nothing is logged per row or per request. Numbers stay numbers in JSON: pass a rounded number as
// Rounded(percent, 1), not as text. Any thread.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/core.h>

namespace dt {

struct LogField {
  template <class T>
  LogField(std::string_view key_in, const T& value_in)
      : key(key_in), value(fmt::format("{}", value_in)), quoted(!std::is_arithmetic_v<T>) {}
  std::string_view key;
  std::string value;
  bool quoted;  // JSON writes `value` as a string, not as a number.
};
using LogFields = std::initializer_list<LogField>;

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  std::string role;  // Written with every event, e.g. "worker".
};

// Called once, at the start of a process. Before it, events of level info and above go to standard
// error.
void InitLog(const LogOptions& options);
// Called when the job file, which may ask for JSON, has been read.
void SetLogFormat(LogFormat format);
bool LogsJson();
// Called when the scheduler has given this process its id.
void SetLogProcess(std::string_view role, uint32_t id);

// `value` rounded to `digits` decimal digits.
double Rounded(double value, int digits);

void LogDebug(std::string_view event, LogFields fields = {});
void LogInfo(std::string_view event, LogFields fields = {});
void LogWarn(std::string_view event, LogFields fields = {});
void LogError(std::string_view event, LogFields fields = {});
// Writes the error that ends a process which logs JSON, even at LogLevel::kOff.
void LogEnd(std::string_view event, LogFields fields);

}  // namespace dt
