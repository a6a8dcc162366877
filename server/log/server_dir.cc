#include "server/log/server_dir.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/base/hash.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/storage/files.h"
#include "server/log/push_log_reader.h"

namespace dt::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kDirsMax = 4096;

// {"content": …, "check": digest of the content as it is printed}
Status WriteChecked(const std::string& path, const Json& content) {
  const Json json = {{"content", content}, {"check", HashString(content.dump())}};
  return WriteWholeFile(path, json.dump(1) + "\n");
}

// NotFound; DataLoss where it is not as it was written.
Result<Json> ReadChecked(const std::string& path) {
  DT_TRY(const std::string text, ReadWholeFile(path));
  const Json json = Json::parse(text, nullptr, false);
  const bool shaped = json.is_object() && json.contains("content") && json.contains("check");
  if (!shaped || json["check"] != HashString(json["content"].dump())) {
    return DataLoss("{} is damaged", path);
  }
  return json["content"];
}

// The lock's descriptor; -1 when another process holds it.
Result<int> TakeLock(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) {
    return WithHint(
        Unavailable("the server's directory {} cannot be made: {}", dir, error.message()),
        "cluster.server.dir names another one");
  }
  const std::string path = dir + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return WithHint(
        Unavailable("the server's directory {} cannot be written: {}", dir, std::strerror(errno)),
        "cluster.server.dir names another one");
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

Result<ServerDir> ServerDir::Open(const JobConfig& job) {
  const std::string parent = std::filesystem::absolute(job.cluster.server.dir).string();
  for (uint32_t i = 0; i < kDirsMax; ++i) {
    const std::string dir = fmt::format("{}/server-{}", parent, i);
    DT_TRY(const int lock, TakeLock(dir));
    if (lock < 0) continue;
    ServerDir found(dir, lock);
    // Another machine's, which will come back for it.
    const Result<Json> identity = ReadChecked(dir + "/identity.json");
    if (identity.ok() && identity->value("host", "") != HostName()) continue;
    return found;
  }
  return Unavailable("{} directories of servers in {} are in use", kDirsMax, parent);
}

ServerDir::ServerDir(ServerDir&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

ServerDir::~ServerDir() {
  if (lock_ >= 0) close(lock_);
}

std::optional<ServerIdentity> ServerDir::ReadIdentity(const JobConfig& job) const {
  const Result<Json> json = ReadChecked(path_ + "/identity.json");
  if (!json.ok()) return std::nullopt;
  ServerIdentity identity{json->value("claim", uint64_t{0}), json->value("job", uint64_t{0}),
                          json->value("host", ""), json->value("listen", ""),
                          json->value("endpoints", std::vector<std::string>())};
  const bool ours = identity.claim != 0 && identity.job_fingerprint == job.fingerprint &&
                    identity.host == HostName() && !identity.endpoints.empty();
  return ours ? std::optional(std::move(identity)) : std::nullopt;
}

Status ServerDir::SetIdentity(const ServerIdentity& identity) const {
  return WriteChecked(path_ + "/identity.json", {{"claim", identity.claim},
                                                 {"job", identity.job_fingerprint},
                                                 {"host", identity.host},
                                                 {"listen", identity.listen},
                                                 {"endpoints", identity.endpoints}});
}

Result<std::optional<LogBase>> ServerDir::ReadBase() const {
  const Result<Json> json = ReadChecked(path_ + "/base.json");
  if (json.status().code() == StatusCode::kNotFound) return std::optional<LogBase>();
  if (!json.ok()) return json.status();
  return std::optional(LogBase{Generation(json->value("generation", uint64_t{0})),
                               json->value("step", uint64_t{0}), json->value("folder", ""),
                               json->value("first_segments", std::vector<uint64_t>())});
}

Status ServerDir::SetBase(const LogBase& base) const {
  return WriteChecked(path_ + "/base.json", {{"generation", base.generation.value()},
                                             {"step", base.step},
                                             {"folder", base.folder},
                                             {"first_segments", base.first_segments}});
}

void ServerDir::RemoveLog() const {
  std::error_code ignored;
  std::filesystem::remove(path_ + "/base.json", ignored);  // First: without it nothing counts.
  RemoveAllSegments(path_);
}

void ServerDir::RemoveAll() const {
  RemoveLog();
  std::error_code ignored;
  std::filesystem::remove(path_ + "/identity.json", ignored);
}

}  // namespace dt::server
