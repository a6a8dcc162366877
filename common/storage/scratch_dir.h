// A temporary folder with one owner, removed with it. Many owners (other jobs, evaluations beside
// a training) may have theirs in the same parent. Those of one kind have one prefix.
//
//   <parent>/scratch.lock            held for a moment, while a folder is made or old ones removed
//   <parent>/<prefix>-XXXXXX/lock    held while the owner lives
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace dt {

class ScratchDir {
 public:
  // Makes a folder in `parent`, which is made if absent, and removes those of its kind that killed
  // processes left there. Unavailable, with its name, if the folder cannot be made.
  static Result<ScratchDir> Make(const std::string& parent, std::string_view prefix);
  // Removes those that killed processes left.
  static void RemoveAbandoned(const std::string& parent, std::string_view prefix);
  ~ScratchDir();  // Removes the folder with its contents.
  ScratchDir(ScratchDir&& other) noexcept;
  ScratchDir& operator=(ScratchDir&&) = delete;

  const std::string& path() const { return path_; }

 private:
  ScratchDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_ = -1;
};

}  // namespace dt
