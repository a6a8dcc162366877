#include "common/base/log.h"

#include <memory>
#include <mutex>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "common/base/text.h"

namespace dt {
namespace {

struct LogState {
  std::shared_ptr<spdlog::logger> logger = spdlog::stderr_logger_mt("dovetail");
  std::mutex mutex;  // Guards what follows; taken once per event, and events are rare.
  LogFormat format = LogFormat::kText;
  std::string role;
  LogState() { logger->set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc); }
};

LogState& State() {
  static LogState state;
  return state;
}

std::string Quoted(std::string_view printable) {
  std::string out = "\"";
  for (const char c : printable) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

void Write(spdlog::level::level_enum level, std::string_view event, LogFields fields) {
  LogState& state = State();
  if (!state.logger->should_log(level)) return;
  std::lock_guard lock(state.mutex);
  std::string line;
  if (state.format == LogFormat::kJson) {
    line = fmt::format("\"event\":\"{}\"", event);
    if (!state.role.empty()) line += fmt::format(",\"role\":\"{}\"", state.role);
    for (const LogField& f : fields) {
      line += fmt::format(",\"{}\":{}", f.key, f.quoted ? Quoted(Printable(f.value)) : f.value);
    }
    line += "}";
  } else {
    line = event;
    if (!state.role.empty()) line += fmt::format(" role={}", state.role);
    for (const LogField& f : fields) {
      const std::string value = Printable(f.value);
      const bool plain = !value.empty() && value.find_first_of(" \n\"=") == std::string::npos;
      line += fmt::format(" {}={}", f.key, plain ? value : Quoted(value));
    }
  }
  state.logger->log(level, line);
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
  std::lock_guard lock(state.mutex);
  state.logger->set_level(ToSpdlog(options.level));
  state.format = options.format;
  state.role = options.role;
  state.logger->set_pattern(options.format == LogFormat::kJson
                                ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v"
                                : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                            spdlog::pattern_time_type::utc);
}

void SetLogProcess(std::string_view role, uint32_t id) {
  LogState& state = State();
  std::lock_guard lock(state.mutex);
  state.role = fmt::format("{}-{}", role, id);
}

void LogDebug(std::string_view event, LogFields fields) {
  Write(spdlog::level::debug, event, fields);
}
void LogInfo(std::string_view event, LogFields fields) {
  Write(spdlog::level::info, event, fields);
}
void LogWarn(std::string_view event, LogFields fields) {
  Write(spdlog::level::warn, event, fields);
}
void LogError(std::string_view event, LogFields fields) {
  Write(spdlog::level::err, event, fields);
}

}  // namespace dt
