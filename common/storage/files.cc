#include "common/storage/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace dt {
namespace {

namespace fs = std::filesystem;

constexpr int kLinksMax = 40;  // The limit of the Linux kernel.

std::string_view KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  return S_ISSOCK(mode) ? "a socket" : "a device";
}

Status NotAFile(const std::string& path, mode_t mode) {
  return Invalid("{} is {}, not a file", path, KindOf(mode));
}

mode_t FileMode(Readers readers) { return readers == Readers::kOwner ? 0600 : 0666; }

// Follows symbolic links. The result need not exist: a dangling link gives the path that it names.
std::string Followed(std::string path) {
  for (int links = 0; links < kLinksMax; ++links) {
    std::error_code error;
    const fs::path to = fs::read_symlink(path, error);
    if (error) break;
    path = (fs::path(path).parent_path() / to).string();
  }
  return path;
}

std::error_code MakeFoldersOf(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  return error;
}

// Returns the descriptor of our standard output or error if `info` describes it, else -1. Such a
// file must not be opened again, because the second descriptor would overwrite it from its start.
int OwnOutput(const struct stat& info) {
  for (const int own : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat of {};
    const bool same = fstat(own, &of) == 0 && of.st_dev == info.st_dev && of.st_ino == info.st_ino;
    if (same) return own;
  }
  return -1;
}

Result<OpenFile> OpenInPlace(const std::string& path, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return NotAFile(path, info.st_mode);
  if (const int own = OwnOutput(info); own >= 0) {
    OpenFile file(fcntl(own, F_DUPFD_CLOEXEC, 0));
    if (!file.ok()) return DiskError("writing", path, errno);
    return file;
  }
  // With O_NONBLOCK, opening a pipe without a reader fails at once. With a reader, writes may
  // block.
  OpenFile file(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.ok() && errno == ENXIO && S_ISFIFO(info.st_mode)) {
    return WithHint(Unavailable("nobody reads the pipe {}", path), "start its reader first");
  }
  if (!file.ok()) return DiskError("writing", path, errno);
  const int flags = fcntl(file.descriptor(), F_GETFL);
  if (fcntl(file.descriptor(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return DiskError("writing", path, errno);
  }
  return file;
}

bool IsWrittenInPlace(const struct stat& info) {
  return !S_ISREG(info.st_mode) || OwnOutput(info) >= 0;
}

std::string DraftOf(const std::string& target) { return target + ".part"; }

}  // namespace

Status DiskError(std::string_view doing, const std::string& path, int error) {
  if (error == ENOENT) return NotFound("{} {}: {}", doing, path, std::strerror(error));
  Status status = Unavailable("{} {}: {}", doing, path, std::strerror(error));
  if (error == ENOSPC) return WithHint(status, "make room on that disk");
  if (error == EFBIG) return WithHint(status, "raise the limit on the size of files (ulimit -f)");
  if (error == EACCES || error == EPERM) return WithHint(status, "give this user the permission");
  return status;
}

OpenFile::~OpenFile() {
  if (ok()) close(descriptor_);
}

Result<OpenFile> OpenForReading(const std::string& path) {
  OpenFile file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  const int error = errno;
  struct stat info {};
  const bool known = file.ok() ? fstat(file.descriptor(), &info) == 0
                               : error == ENXIO && stat(path.c_str(), &info) == 0;
  if (known && !S_ISREG(info.st_mode)) return NotAFile(path, info.st_mode);
  if (!file.ok()) return DiskError("reading", path, error);
  return file;
}

Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max) {
  DT_TRY(const OpenFile file, OpenForReading(path));
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = read(file.descriptor(), buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DiskError("reading", path, errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<size_t>(n));
    if (content.size() > bytes_max) {
      return Malformed("{} is larger than the {} bytes expected", path, bytes_max);
    }
  }
}

Result<OpenFile> OpenDraft(const std::string& path, Readers readers) {
  unlink(path.c_str());
  OpenFile file(
      open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FileMode(readers)));
  if (!file.ok()) return DiskError("writing", path, errno);
  return file;
}

Result<std::unique_ptr<NewFile>> NewFile::Create(const std::string& path, Readers readers) {
  struct stat info {};
  const bool found = stat(path.c_str(), &info) == 0;
  if (!found && errno != ENOENT) return DiskError("writing", path, errno);
  if (found && IsWrittenInPlace(info)) {
    DT_TRY(OpenFile file, OpenInPlace(path, info));
    return std::make_unique<NewFile>(std::move(file), path, "");
  }
  std::string target = Followed(path);
  if (const std::error_code error = MakeFoldersOf(target)) {
    return DiskError("making the folder of", path, error.value());
  }
  DT_TRY(OpenFile file, OpenDraft(DraftOf(target), readers));
  return std::make_unique<NewFile>(std::move(file), path, std::move(target));
}

NewFile::~NewFile() {
  if (!target_.empty()) unlink(DraftOf(target_).c_str());
}

Status NewFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(file_.descriptor(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DiskError("writing", path_, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return OkStatus();
}

Status NewFile::WriteAt(uint64_t at, std::string_view bytes) {
  if (target_.empty()) {
    return Invalid("{} is no file, and what is written there is not written front to back", path_);
  }
  while (!bytes.empty()) {
    const ssize_t n =
        pwrite(file_.descriptor(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DiskError("writing", path_, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
  return OkStatus();
}

Status NewFile::Finish() {
  if (target_.empty()) return OkStatus();
  if (fsync(file_.descriptor()) != 0) return DiskError("writing", path_, errno);
  if (std::rename(DraftOf(target_).c_str(), target_.c_str()) != 0) {
    return DiskError("naming", path_, errno);
  }
  target_.clear();
  return OkStatus();
}

Status WriteWholeFile(const std::string& path, std::string_view content, Readers readers) {
  DT_TRY(const auto file, NewFile::Create(path, readers));
  DT_TRY_STATUS(file->Write(content));
  return file->Finish();
}

Status CheckWritable(const std::string& path) {
  const auto refused = [&path](std::string_view why) {
    return Invalid("{} cannot be written: {}", path, why);
  };
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && IsWrittenInPlace(info)) {
    if (S_ISDIR(info.st_mode)) return NotAFile(path, info.st_mode);
    // A pipe is not opened here: closing it would end its reader's input.
    const bool may =
        OwnOutput(info) >= 0 || faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
    return may ? OkStatus() : refused(std::strerror(errno));
  }
  const std::string target = Followed(path);
  if (const std::error_code error = MakeFoldersOf(target)) return refused(error.message());
  const std::string draft = DraftOf(target);
  const OpenFile file(
      open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.ok()) return errno == EEXIST ? OkStatus() : refused(std::strerror(errno));
  unlink(draft.c_str());
  return OkStatus();
}

Status MakePrivateFolder(const std::string& path) {
  const std::string folder =
      fs::path(path).has_filename() ? path : fs::path(path).parent_path().string();
  int why = MakeFoldersOf(folder).value();
  if (why == 0 && mkdir(folder.c_str(), 0700) != 0) why = errno;
  std::error_code ignored;
  if (why == 0 || fs::is_directory(folder, ignored)) return OkStatus();
  return DiskError("making the folder", path, why);
}

Status SyncPath(const std::string& path) {
  const OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok() || fsync(file.descriptor()) != 0) return DiskError("writing", path, errno);
  return OkStatus();
}

}  // namespace dt
