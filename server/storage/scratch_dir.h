// A folder of one owner's own, for what does not outlive it: other jobs, and evaluations beside a
// training, have theirs in the same place.
//
//   <parent>/rows.lock            held for a moment, while a folder is made or old ones are removed
//   <parent>/rows-XXXXXX/lock     held while the owner lives
#pragma once

#include <string>

#include "common/base/status.h"

namespace dt::server {

class ScratchDir {
 public:
  // Removes those that killed processes left in `parent`, which is made where it is absent.
  // Unavailable naming the folder that cannot be made.
  static Result<ScratchDir> Make(const std::string& parent);
  ~ScratchDir();  // It goes with all that is in it.
  ScratchDir(ScratchDir&& other) noexcept;
  ScratchDir& operator=(ScratchDir&&) = delete;

  const std::string& path() const { return path_; }

 private:
  ScratchDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_ = -1;
};

}  // namespace dt::server
