// Files: read only where they are files, and written so that they appear whole or not at all. What
// is written survives loss of power.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace dt {

// "writing <path>: No space left on device", with a hint.
Status DiskError(std::string_view doing, const std::string& path, int error);

// Owns a descriptor.
class OpenFile {
 public:
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(other.Release()) {}
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }
  bool ok() const { return descriptor_ >= 0; }
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

// Never waits: Invalid for a folder, a pipe, a socket, a device. Errors name the path.
Result<OpenFile> OpenForReading(const std::string& path);
// Malformed where it is larger than `bytes_max`.
Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max = ~size_t{0});

// Who may read a new file or folder: whom the umask allows, or its owner alone.
enum class Readers { kAll, kOwner };

// A new, empty file to read and write, which is renamed later. What a killed process left under
// that name goes; nobody's link is followed.
Result<OpenFile> OpenDraft(const std::string& path, Readers readers);

// A file that comes to be as "<path>.part" and is renamed once it is on the disk. The folders on
// the way are made. A link is followed: what it leads to is replaced, the link stays. What is there
// and is no file (a pipe, a device), or is this process's own output, is written in place. One
// thread.
class NewFile {
 public:
  static Result<std::unique_ptr<NewFile>> Create(const std::string& path,
                                                 Readers readers = Readers::kAll);
  // For Create. `target` is empty where it is written in place.
  NewFile(OpenFile file, std::string path, std::string target)
      : file_(std::move(file)), path_(std::move(path)), target_(std::move(target)) {}
  ~NewFile();  // What was not finished is removed.
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  Status Write(std::string_view bytes);  // Behind what was written before.
  // Invalid where it is written in place: that has no places.
  Status WriteAt(uint64_t at, std::string_view bytes);
  Status Finish();  // It appears under its name. Nothing follows.

 private:
  const OpenFile file_;
  const std::string path_;
  std::string target_;  // Empty, too, once it has its name.
};

Status WriteWholeFile(const std::string& path, std::string_view content,
                      Readers readers = Readers::kAll);
// Invalid if NewFile could not be made there, as far as can be told without making it: said before
// hours of work, not after. Makes the folder.
Status CheckWritable(const std::string& path);

// The folder, closed to other accounts if it is made now, and those on the way to it.
Status MakePrivateFolder(const std::string& path);

// A file or a folder: what it holds is on the disk when it returns.
Status SyncPath(const std::string& path);

}  // namespace dt
