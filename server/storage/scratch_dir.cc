#include "server/storage/scratch_dir.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include "common/base/log.h"

namespace dt::server {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPattern = "rows-XXXXXX";

Status CannotMake(const std::string& path, std::string_view why) {
  return WithHint(Unavailable("making folder {}: {}", path, why),
                  "make it writable, or give cluster.server.dir another one");
}

class LockedFile {
 public:
  LockedFile(const std::string& path, int how)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (fd_ < 0) return;
    while (flock(fd_, how) != 0) {
      if (errno != EINTR) return;
    }
    locked_ = true;
  }
  ~LockedFile() {
    if (fd_ >= 0) close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  bool opened() const { return fd_ >= 0; }
  // False if another process holds the lock, and on file systems without locks: there no folder
  // ever counts as abandoned.
  bool locked() const { return locked_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
  bool locked_ = false;
};

// REQUIRES: the parent's lock is held; otherwise a folder that is being made could be removed.
void RemoveAbandoned(const std::string& parent) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.size() != kPattern.size() || !name.starts_with("rows-")) continue;
    const std::string lock = entry.path().string() + "/lock";
    if (!fs::exists(lock, ignored)) continue;
    if (!LockedFile(lock, LOCK_EX | LOCK_NB).locked()) continue;
    fs::remove_all(entry.path(), ignored);
    LogInfo("server.removed_old_rows", {{"folder", entry.path().string()}});
  }
}

}  // namespace

Result<ScratchDir> ScratchDir::Make(const std::string& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return CannotMake(parent, error.message());
  const LockedFile one_at_a_time(parent + "/rows.lock", LOCK_EX);
  if (!one_at_a_time.opened()) return CannotMake(parent, std::strerror(errno));
  RemoveAbandoned(parent);
  std::string path = fmt::format("{}/{}", parent, kPattern);
  if (mkdtemp(path.data()) == nullptr) return CannotMake(path, std::strerror(errno));
  LockedFile lock(path + "/lock", LOCK_EX | LOCK_NB);
  if (!lock.opened()) {
    const int why = errno;
    fs::remove(path, error);
    return CannotMake(path, std::strerror(why));
  }
  return ScratchDir(std::move(path), lock.Release());
}

ScratchDir::ScratchDir(ScratchDir&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

ScratchDir::~ScratchDir() {
  if (lock_ < 0) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  close(lock_);
}

}  // namespace dt::server
