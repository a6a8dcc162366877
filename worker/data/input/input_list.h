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
  static Result<InputList> OfFiles(const std::vector<std::string>& files, std::string_view split);
  // One input.
  static InputList OfCommand(std::string command);

  size_t size() const { return is_command() ? 1 : files_.size(); }
  bool is_command() const { return !command_.empty(); }
  // For errors: the path, or "command".
  const std::string& name(size_t input) const;
  uint64_t bytes() const { return bytes_; }  // Size of all files; 0 for a command.
  // "path size mtime" lines.
  const std::string& sources_text() const { return sources_text_; }
  const std::string& paths_text() const { return paths_text_; }

  // Opens an input at its start; a command is run.
  Result<NamedSource> Open(size_t input) const;

 private:
  std::string command_;  // Empty if the inputs are files.
  std::vector<std::string> files_;
  uint64_t bytes_ = 0;
  std::string sources_text_;
  std::string paths_text_;  // The paths alone.
};

}  // namespace dt::worker
