#include "cli/process/child_log.h"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/log.h"

namespace dt::cli {
namespace {

constexpr size_t kLinesKept = 20;
constexpr size_t kLineMax = 64 << 10;  // Longer lines are forwarded in pieces.
constexpr int kPipeBytes = 1 << 20;    // Lets the child write on while this process is stopped.
constexpr size_t kReadBytes = 16 << 10;

}  // namespace

ChildLog::ChildLog(std::string name, int pipe) : name_(std::move(name)), pipe_(pipe) {
  fcntl(pipe_, F_SETFL, O_NONBLOCK);
  fcntl(pipe_, F_SETPIPE_SZ, kPipeBytes);  // If this is not allowed, the size stays.
}

ChildLog::~ChildLog() {
  if (pipe_ >= 0) close(pipe_);
}

ChildLog::ChildLog(ChildLog&& other) noexcept
    : name_(std::move(other.name_)),
      pipe_(std::exchange(other.pipe_, -1)),
      unfinished_(std::move(other.unfinished_)),
      last_lines_(std::move(other.last_lines_)) {}

ChildLog& ChildLog::operator=(ChildLog&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(pipe_, other.pipe_);
  std::swap(unfinished_, other.unfinished_);
  std::swap(last_lines_, other.last_lines_);
  return *this;
}

void ChildLog::PassOn() {
  char buffer[kReadBytes];
  while (pipe_ >= 0) {
    const ssize_t bytes = read(pipe_, buffer, sizeof(buffer));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return;  // Nothing more has arrived.
    unfinished_.append(buffer, static_cast<size_t>(bytes));
    if (bytes == 0) close(std::exchange(pipe_, -1));
    size_t begin = 0;
    for (size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      PassOnLine(std::string_view(unfinished_).substr(begin, end - begin));
    }
    unfinished_.erase(0, begin);
    if (unfinished_.empty() || (pipe_ >= 0 && unfinished_.size() < kLineMax)) continue;
    PassOnLine(std::exchange(unfinished_, {}));
  }
}

void ChildLog::PassOnLine(std::string_view line) {
  last_lines_.emplace_back(line);
  if (last_lines_.size() > kLinesKept) last_lines_.pop_front();
  if (LogsJson() && !(line.starts_with('{') && nlohmann::json::accept(line))) {
    return LogEnd("process.printed", {{"name", name_}, {"text", line}});
  }
  const std::string whole = std::string(line) + "\n";
  std::fwrite(whole.data(), 1, whole.size(), stderr);
}

}  // namespace dt::cli
