// The inputs of one split: files, or the output of a command.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "worker/data/input/byte_source.h"

namespace dt::worker {

// Where bytes come from. What they mean is the business of format/file_format.h. Immutable once
// made: any thread.
class InputList {
 public:
  // An empty list.
  InputList() = default;
  // NotFound if a file is absent. `split` is the key of the files in the job file, for errors.
  // Patterns of remote files are expanded here (ListRemoteFiles); those of local files were
  // expanded when the job file was read.
  static Result<InputList> OfFiles(const std::vector<std::string>& files, std::string_view split);
  // One input.
  static InputList OfCommand(std::string command);

  size_t size() const { return is_command() ? 1 : files_.size(); }
  bool is_command() const { return !command_.empty(); }
  // For errors: the path, or "command".
  const std::string& name(size_t input) const;
  uint64_t bytes() const { return bytes_; }  // Size of all files, or of a part; 0 for a command.
  // The part `number` of so many parts of equal size of the files, one after the other. REQUIRES:
  // they are files.
  InputList Part(uint32_t number, uint32_t of) const;
  // "path size mtime" lines.
  const std::string& sources_text() const { return sources_text_; }
  const std::string& paths_text() const { return paths_text_; }

  // Opens an input at its start; a command is run.
  Result<NamedSource> Open(size_t input) const;
  // Call it when all has been read. Unavailable if a file is not as it was when the list was made:
  // then some of what was read may be old and some new.
  Status CheckUnchanged() const;

 private:
  struct File {
    std::string path;
    uint64_t size = 0;
    std::string modified;  // When it was, in seconds.
    friend bool operator==(const File&, const File&) = default;
  };

  // NotFound if the file is absent.
  static Result<File> Describe(const std::string& path);
  static File Describe(const struct RemoteInfo& remote);
  Status AddFile(const std::string& file, std::string_view split);
  Status AddRemote(const std::string& pattern, std::string_view split);
  // `path` tells which file it is, whatever the working directory.
  void Add(File file, const std::string& path);

  std::string command_;  // Empty if the inputs are files.
  std::vector<File> files_;
  std::vector<ByteRange> parts_;  // Of each file: the bytes whose rows are meant.
  uint64_t bytes_ = 0;
  std::string sources_text_;
  std::string paths_text_;  // The paths alone.
};

}  // namespace dt::worker
