#include "common/base/log.h"

#include <atomic>
#include <cmath>
#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "common/base/immortal.h"
#include "common/base/log_fields.h"
#include "common/base/mutex.h"
#include "common/base/text.h"

namespace dt {
namespace {

using Json = nlohmann::ordered_json;

struct LogState {
  std::shared_ptr<spdlog::logger> logger = spdlog::stderr_logger_mt("dovetail");
  std::atomic<LogFormat> format = LogFormat::kText;
  Mutex mutex;  // Locked once per event, and events are rare.
  std::string role DT_GUARDED_BY(mutex);
  LogState() { logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc); }
};

LogState& State() {
  static Immortal<LogState> state;
  return *state;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One event as JSON, without the opening brace and the comma, which are in the logger's pattern.
std::string JsonLine(std::string_view event, const std::string& role,
                     std::span<const LogField> fields) {
  Json line = {{"event", event}};
  if (!role.empty()) line["role"] = role;
  for (const LogField& f : fields) {
    // JSON has no infinity and no NaN: the parser refuses them, and null is written instead.
    const Json number = f.quoted ? Json() : Json::parse(f.value, nullptr, false);
    line[std::string(f.key)] = f.quoted                ? Json(Printable(f.value))
                               : number.is_discarded() ? Json()
                                                       : number;
  }
  return Dump(line).substr(1);
}

std::string TextLine(std::string_view event, const std::string& role,
                     std::span<const LogField> fields) {
  std::string line(event);
  if (!role.empty()) line += fmt::format(" role={}", role);
  for (const LogField& f : fields) {
    const std::string value = Printable(f.value);
    const bool plain = !value.empty() && value.find_first_of(" \n\"=") == std::string::npos;
    line += fmt::format(" {}={}", f.key, plain ? value : Dump(Json(value)));
  }
  return line;
}

void Write(spdlog::level::level_enum level, std::string_view event,
           std::span<const LogField> fields) {
  LogState& state = State();
  if (!state.logger->should_log(level)) return;
  MutexLock lock(state.mutex);
  const auto line = state.format == LogFormat::kJson ? JsonLine : TextLine;
  state.logger->log(level, line(event, state.role, fields));
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void InitLog(const LogOptions& options) {
  LogState& state = State();
  {
    MutexLock lock(state.mutex);
    state.logger->set_level(ToSpdlog(options.level));
    state.role = options.role;
  }
  SetLogFormat(options.format);
}

void SetLogFormat(LogFormat format) {
  LogState& state = State();
  MutexLock lock(state.mutex);
  state.format = format;
  state.logger->set_pattern(format == LogFormat::kJson
                                ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v"
                                : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                            spdlog::pattern_time_type::utc);
}

bool LogsJson() { return State().format == LogFormat::kJson; }

double Rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

void SetLogProcess(std::string_view role, uint32_t id) {
  LogState& state = State();
  MutexLock lock(state.mutex);
  state.role = fmt::format("{}-{}", role, id);
}

void LogDebug(std::string_view event, LogFields fields) {
  Write(spdlog::level::debug, event, {fields.begin(), fields.size()});
}
void LogInfo(std::string_view event, LogFields fields) {
  Write(spdlog::level::info, event, {fields.begin(), fields.size()});
}
void LogInfo(std::string_view event, std::span<const LogField> fields) {
  Write(spdlog::level::info, event, fields);
}
void LogWarn(std::string_view event, LogFields fields) {
  Write(spdlog::level::warn, event, {fields.begin(), fields.size()});
}
void LogError(std::string_view event, LogFields fields) {
  Write(spdlog::level::err, event, {fields.begin(), fields.size()});
}
void LogEnd(std::string_view event, LogFields fields) {
  LogState& state = State();
  if (state.logger->level() == spdlog::level::off) state.logger->set_level(spdlog::level::err);
  Write(spdlog::level::err, event, {fields.begin(), fields.size()});
}

}  // namespace dt
