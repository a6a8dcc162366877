#include "common/storage/scratch_dir.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include "common/base/folder.h"
#include "common/base/log.h"

namespace dt {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRandom = "-XXXXXX";

Status CannotMake(const std::string& path, std::string_view why) {
  return Unavailable("making folder {}: {}", path, why);
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
  // False if another process holds the lock, and on file systems without locks, where no folder
  // ever counts as abandoned.
  bool locked() const { return locked_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
  bool locked_ = false;
};

std::string LockOf(const std::string& parent) { return parent + "/scratch.lock"; }

// REQUIRES: the parent's lock is held; otherwise a folder that is being created could be removed.
void RemoveUnlocked(const std::string& parent, std::string_view prefix) {
  std::error_code ignored;
  for (const fs::path& path : ListFolderIfAny(parent)) {
    const std::string name = path.filename().string();
    if (name.size() != prefix.size() + kRandom.size()) continue;
    if (!name.starts_with(prefix) || name[prefix.size()] != '-') continue;
    const std::string lock = path.string() + "/lock";
    if (!fs::exists(lock, ignored)) continue;
    if (!LockedFile(lock, LOCK_EX | LOCK_NB).locked()) continue;
    fs::remove_all(path, ignored);
    LogInfo("scratch.removed", {{"folder", path.string()}});
  }
}

}  // namespace

void ScratchDir::RemoveAbandoned(const std::string& parent, std::string_view prefix) {
  std::error_code ignored;
  if (!fs::exists(LockOf(parent), ignored)) return;  // No folder was ever created here.
  const LockedFile one_at_a_time(LockOf(parent), LOCK_EX);
  RemoveUnlocked(parent, prefix);
}

Result<ScratchDir> ScratchDir::Make(const std::string& parent, std::string_view prefix) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return CannotMake(parent, error.message());
  const LockedFile one_at_a_time(LockOf(parent), LOCK_EX);
  if (!one_at_a_time.opened()) return CannotMake(parent, std::strerror(errno));
  RemoveUnlocked(parent, prefix);
  std::string path = fmt::format("{}/{}{}", parent, prefix, kRandom);
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

}  // namespace dt
