#include "common/control/process_end.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/storage/json_file.h"

namespace dt {
namespace {

constexpr size_t kLineMax = 64 << 10;

}  // namespace

Status SendProcessEnd(int pipe, const ProcessEnd& end) {
  const Json json = {
      {"name", end.name}, {"pid", end.pid}, {"how", end.how}, {"returns", end.returns}};
  const std::string line = json.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  const ssize_t written = write(pipe, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return OkStatus();
  return Unavailable("the scheduler cannot be told: {}", std::strerror(errno));
}

ProcessEndReader::ProcessEndReader(int pipe) : pipe_(pipe) {
  if (pipe_ >= 0) fcntl(pipe_, F_SETFL, O_NONBLOCK);
}

std::vector<ProcessEnd> ProcessEndReader::Take() {
  std::vector<ProcessEnd> ends;
  if (pipe_ < 0) return ends;
  char buffer[4096];
  ssize_t bytes = 0;
  while ((bytes = read(pipe_, buffer, sizeof(buffer))) > 0) {
    unfinished_.append(buffer, static_cast<size_t>(bytes));
  }
  if (bytes == 0) pipe_ = -1;
  size_t begin = 0;
  for (size_t at; (at = unfinished_.find('\n', begin)) != std::string::npos; begin = at + 1) {
    const Result<Json> json = ParseJson(unfinished_.substr(begin, at - begin), "the launcher");
    if (!json.ok() || !json->is_object()) continue;
    const Json& returns = MemberOf(*json, "returns");
    ends.push_back({TextOf(*json, "name"), static_cast<int64_t>(CountOf(*json, "pid")),
                    TextOf(*json, "how"), returns.is_boolean() && returns.get<bool>()});
  }
  unfinished_.erase(0, begin);
  if (unfinished_.size() > kLineMax) unfinished_.clear();
  return ends;
}

}  // namespace dt
