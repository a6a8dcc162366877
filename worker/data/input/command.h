// A shell command whose output is read. It is killed when this object is destroyed, and when this
// process ends, in whatever way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <sys/types.h>

#include "common/base/status.h"
#include "common/storage/files.h"

namespace dt::worker {

// One thread at a time.
class Command {
 public:
  // Runs `text` with /bin/sh and our standard error. It inherits no open file, and has the default
  // signal handling. Errors: Unavailable.
  static Result<std::unique_ptr<Command>> Start(const std::string& text);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  const std::string& text() const { return text_; }
  // The descriptor from which its output is read.
  int output() const { return output_.descriptor(); }
  // Waits for its end, which is near when its output has ended. Unavailable: it did not end with
  // status 0, after printing `made` bytes.
  Status Reap(uint64_t made);

  class Group;
  Command(std::string text, OpenFile output, std::unique_ptr<Group> group, pid_t child);

 private:
  const std::string text_;
  const OpenFile output_;
  std::unique_ptr<Group> group_;
  pid_t child_;  // 0 once it has been waited for.
};

}  // namespace dt::worker
