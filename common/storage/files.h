// Reads regular files only, and writes files so that they appear whole or not at all. A finished
// file survives a loss of power.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace dt {

// An error such as "writing <path>: No space left on device", with a hint.
Status DiskError(std::string_view doing, const std::string& path, int error);

// Owns a file descriptor.
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

// Opens a regular file and never blocks. Invalid for a folder, a pipe, a socket or a device. Errors
// name the path.
Result<OpenFile> OpenForReading(const std::string& path);
// Malformed if the file is larger than `bytes_max`.
Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max = ~size_t{0});

// Who may read a new file or folder: everyone whom the umask allows, or only the owner.
enum class Readers { kAll, kOwner };

// Creates an empty file to read and write, which the caller renames later. Replaces a file of that
// name that a killed process left; does not follow links.
Result<OpenFile> OpenDraft(const std::string& path, Readers readers);

// A file that is written as "<path>.part" and renamed once it is on disk. Missing folders are
// created. If the path is a symbolic link, its target is replaced and the link stays. An existing
// pipe or device, and this process's own standard output or error, is written in place. One thread
// at a time.
class NewFile {
 public:
  static Result<std::unique_ptr<NewFile>> Create(const std::string& path,
                                                 Readers readers = Readers::kAll);
  // Use Create. `target` is empty if the file is written in place.
  NewFile(OpenFile file, std::string path, std::string target)
      : file_(std::move(file)), path_(std::move(path)), target_(std::move(target)) {}
  ~NewFile();  // Removes the file unless Finish was called.
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  Status Write(std::string_view bytes);  // Appends.
  // Invalid if the file is written in place, because a pipe has no positions.
  Status WriteAt(uint64_t at, std::string_view bytes);
  Status Finish();  // Renames the file to `path`. The last call.

 private:
  const OpenFile file_;
  const std::string path_;
  std::string target_;  // Empty if written in place, and after Finish.
};

Status WriteWholeFile(const std::string& path, std::string_view content,
                      Readers readers = Readers::kAll);
// Invalid if a NewFile could not be written there, as far as that is known beforehand, so that a
// job fails before hours of work and not after them. Creates the folder.
Status CheckWritable(const std::string& path);

// Creates the folder and its parents if absent. New folders are closed to other accounts.
Status MakePrivateFolder(const std::string& path);

// When it returns, the content of the file or folder is on disk.
Status SyncPath(const std::string& path);

}  // namespace dt
