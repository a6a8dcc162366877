#include "server/log/server_dir.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/hash.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/storage/files.h"
#include "common/storage/json_file.h"
#include "server/log/push_log_reader.h"

namespace dt::server {
namespace {

constexpr uint32_t kDirsMax = 4096;

// A path of another file system may be no UTF-8, which JSON has to be.
std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// {"content": …, "check": digest of the content as it is printed}
Status WriteChecked(const std::string& path, const Json& content) {
  const Json json = {{"content", content}, {"check", HashString(Dump(content))}};
  return WriteWholeFile(path, Dump(json, 1) + "\n", Readers::kOwner);
}

// NotFound; DataLoss where it is not as it was written.
Result<Json> ReadChecked(const std::string& path) {
  const Result<Json> json = ReadJsonFile(path);
  if (json.status().code() == StatusCode::kNotFound) return json.status();
  if (!json.ok()) return DataLoss("{} is damaged: {}", path, MessageOf(json.status()));
  const Json& content = MemberOf(*json, "content");
  if (!content.is_object() || CountOf(*json, "check") != HashString(Dump(content))) {
    return DataLoss("{} is damaged", path);
  }
  return content;
}

// The lock's descriptor; -1 when another process holds it.
Result<int> TakeLock(const std::string& dir) {
  if (const Status made = MakePrivateFolder(dir); !made.ok()) {
    return WithHint(
        Unavailable("the server's directory {} cannot be made: {}", dir, MessageOf(made)),
        "cluster.server.dir names another one");
  }
  const std::string path = dir + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
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
    if (identity.ok() && TextOf(*identity, "host") != HostName()) continue;
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
  ServerIdentity identity{CountOf(*json, "claim"), CountOf(*json, "job"), TextOf(*json, "host"),
                          TextOf(*json, "listen")};
  for (const Json& endpoint : MemberOf(*json, "endpoints")) {
    if (endpoint.is_string()) identity.endpoints.push_back(endpoint.get<std::string>());
  }
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
  LogBase base{Generation(CountOf(*json, "generation")), CountOf(*json, "step"),
               TextOf(*json, "folder")};
  for (const Json& segment : MemberOf(*json, "first_segments")) {
    if (segment.is_number_unsigned()) base.first_segments.push_back(segment.get<uint64_t>());
  }
  return std::optional(std::move(base));
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
