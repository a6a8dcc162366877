// One event name and key=value pairs: LogInfo("shard.moved", {{"shard", 17}, {"ms", 812}}). The
// role and the process id are added. error: a person must act; warn: healed by itself; info: a
// state changed (a few per second at most); debug: off unless asked. Never per row or per request.
// In JSON numbers are numbers: give a rounded one as Rounded(percent, 1), not as text. Any thread.
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
  bool quoted;  // A string in JSON; put in quotes in text only where it holds blanks.
};
using LogFields = std::initializer_list<LogField>;

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };
enum class LogFormat { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  std::string role;  // Written with every event, e.g. "worker".
};

// Once, at the start of a process. Without it, events go to standard error at info.
void InitLog(const LogOptions& options);
// After the job file, which may ask for JSON, has been read.
void SetLogFormat(LogFormat format);
bool LogsJson();
// After the scheduler has given this process its id.
void SetLogProcess(std::string_view role, uint32_t id);

// `value` with `digits` digits behind the point.
double Rounded(double value, int digits);

void LogDebug(std::string_view event, LogFields fields = {});
void LogInfo(std::string_view event, LogFields fields = {});
void LogWarn(std::string_view event, LogFields fields = {});
void LogError(std::string_view event, LogFields fields = {});
// The error that ends a process where it logs JSON: written at every level, off included.
void LogEnd(std::string_view event, LogFields fields);

}  // namespace dt
