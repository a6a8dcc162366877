// A temporary folder that has one owner and is removed with it. Many owners (other jobs,
// evaluations during a training) may have folders in the same parent. Folders of one kind have the
// same prefix.
//
//   <parent>/scratch.lock            locked briefly to create a folder or remove old ones
//   <parent>/<prefix>-XXXXXX/lock    locked while the owner lives
#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"

namespace dt {

class ScratchDir {
 public:
  // Creates a folder in `parent`, which is created if absent, and first removes the folders of the
  // same kind that killed processes left there. Unavailable, with its name, if the folder cannot be
  // created.
  static Result<ScratchDir> Make(const std::string& parent, std::string_view prefix);
  // Removes the folders of this kind that killed processes left.
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
