#include "server/log/server_dir.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/folder.h"
#include "common/base/hash.h"
#include "common/base/host_name.h"
#include "common/base/log.h"
#include "common/storage/files.h"
#include "common/storage/json_fields.h"
#include "server/log/record_log_reader.h"

namespace dt::server {
namespace {

constexpr uint32_t kDirsMax = 4096;
constexpr int kLockTries = 100;
constexpr std::string_view kPrefix = "server-";

// Replaces bytes that are not UTF-8, which JSON must be: a path may have any bytes.
std::string Dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Writes {"content": …, "check": digest of the content as it is printed}.
Status WriteChecked(const std::string& path, const Json& content) {
  const Json json = {{"content", content}, {"check", HashString(Dump(content))}};
  return WriteWholeFile(path, Dump(json, 1) + "\n", Readers::kOwner);
}

// Errors: NotFound; DataLoss if the file is not as it was written.
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

bool SameFile(int descriptor, const std::string& path) {
  struct stat held = {};
  struct stat named = {};
  return fstat(descriptor, &held) == 0 && stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// The lock's file descriptor; -1 if another process holds the lock.
Result<int> TakeLock(const std::string& dir) {
  const std::string path = dir + "/lock";
  for (int i = 0; i < kLockTries; ++i) {
    if (const Status made = MakePrivateFolder(dir); !made.ok()) {
      return WithHint(
          Unavailable("the server's directory {} cannot be made: {}", dir, MessageOf(made)),
          "cluster.server.dir names another one");
    }
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT) continue;  // The last owner has just removed the directory.
    if (fd < 0) break;
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (locked && SameFile(fd, path)) return fd;
    close(fd);
    if (!locked) return -1;  // Otherwise the file was removed before it was locked.
  }
  return WithHint(
      Unavailable("the server's directory {} cannot be written: {}", dir, std::strerror(errno)),
      "cluster.server.dir names another one");
}

std::string RunDirOf(const JobConfig& job) {
  return std::filesystem::absolute(job.run_dir).lexically_normal().string();
}

// Whether the directory is of another machine or job, which will come back for it.
bool IsOthers(const std::string& dir, const std::string& run_dir) {
  const Result<Json> identity = ReadChecked(dir + "/identity.json");
  return identity.ok() &&
         (TextOf(*identity, "host") != HostName() || TextOf(*identity, "run_dir") != run_dir);
}

}  // namespace

Result<ServerDir> ServerDir::Open(const JobConfig& job, ProcessId id) {
  const std::string parent = std::filesystem::absolute(job.cluster.server.dir).string();
  const uint32_t first = std::max(1u, id.value());
  for (uint32_t i = first; i < first + kDirsMax; ++i) {
    const std::string dir = fmt::format("{}/{}{}", parent, kPrefix, i);
    DT_TRY(const int lock, TakeLock(dir));
    if (lock < 0) continue;
    ServerDir found(dir, ProcessId(i), RunDirOf(job), lock);
    if (!IsOthers(dir, found.run_dir_)) return found;
  }
  return Unavailable("{} directories of servers in {} are in use", kDirsMax, parent);
}

void ServerDir::RemoveFormer(const JobConfig& job) {
  namespace fs = std::filesystem;
  for (const fs::path& path : ListFolderIfAny(job.cluster.server.dir)) {
    const std::string dir = path.string();
    const std::string name = path.filename().string();
    if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) continue;
    if (name.find_first_not_of("0123456789", kPrefix.size()) != std::string::npos) continue;
    const int fd = open((dir + "/lock").c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) continue;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && !IsOthers(dir, RunDirOf(job))) {
      std::error_code ignored;
      fs::remove_all(dir, ignored);
      LogInfo("server.removed_former", {{"folder", dir}});
    }
    close(fd);
  }
}

ServerDir::ServerDir(ServerDir&& other) noexcept
    : path_(std::move(other.path_)),
      id_(other.id_),
      run_dir_(std::move(other.run_dir_)),
      removed_(other.removed_),
      lock_(std::exchange(other.lock_, -1)) {}

ServerDir::~ServerDir() {
  if (lock_ < 0) return;
  std::error_code ignored;
  if (removed_) std::filesystem::remove_all(path_, ignored);
  close(lock_);
}

std::optional<ServerIdentity> ServerDir::ReadIdentity(const JobConfig& job) const {
  const Result<Json> json = ReadChecked(path_ + "/identity.json");
  if (!json.ok()) return std::nullopt;
  ServerIdentity identity{CountOf(*json, "server_token"), CountOf(*json, "job"),
                          TextOf(*json, "host"), TextOf(*json, "listen")};
  for (const Json& endpoint : MemberOf(*json, "endpoints")) {
    if (endpoint.is_string()) identity.endpoints.push_back(endpoint.get<std::string>());
  }
  const bool ours = identity.server_token != 0 && identity.job_fingerprint == job.fingerprint &&
                    identity.host == HostName() && !identity.endpoints.empty();
  return ours ? std::optional(std::move(identity)) : std::nullopt;
}

Status ServerDir::SetIdentity(const ServerIdentity& identity) const {
  return WriteChecked(path_ + "/identity.json", {{"server_token", identity.server_token},
                                                 {"job", identity.job_fingerprint},
                                                 {"run_dir", run_dir_},
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
  // Its checksum shows that this program wrote it.
  if (json->contains("taken")) FieldsFromJson(json->at("taken"), base.taken);
  return std::optional(std::move(base));
}

Status ServerDir::SetBase(const LogBase& base) const {
  return WriteChecked(path_ + "/base.json", {{"generation", base.generation.value()},
                                             {"step", base.step},
                                             {"folder", base.folder},
                                             {"first_segments", base.first_segments},
                                             {"taken", FieldsToJson(base.taken)}});
}

void ServerDir::RemoveLog() const {
  std::error_code ignored;
  // First, because without it no segment counts.
  std::filesystem::remove(path_ + "/base.json", ignored);
  RemoveAllSegments(path_);
}

void ServerDir::RemoveAll() {
  RemoveLog();
  std::error_code ignored;
  std::filesystem::remove(path_ + "/identity.json", ignored);
  removed_ = true;
}

}  // namespace dt::server
