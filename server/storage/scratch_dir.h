// A temporary folder with one owner, removed with it. Many owners (other jobs, evaluations beside
// a training) may have theirs in the same parent.
//
//   <parent>/rows.lock            held for a moment, while a folder is made or old ones are removed
//   <parent>/rows-XXXXXX/lock     held while the owner lives
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt::server {

class ScratchDir {
 public:
  // Makes a folder in `parent`, which is made if absent, and removes those that killed processes
  // left there. Unavailable, with its name, if the folder cannot be made.
  static Result<ScratchDir> Make(const std::string& parent);
  ~ScratchDir();  // Removes the folder with its contents.
  ScratchDir(ScratchDir&& other) noexcept;
  ScratchDir& operator=(ScratchDir&&) = delete;

  const std::string& path() const { return path_; }

 private:
  ScratchDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_ = -1;
};

}  // namespace dt::server
