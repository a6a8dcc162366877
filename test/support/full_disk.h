// Two ways in which a test can fill a disk.
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt::test {

// While it exists, writes that extend a file of this process beyond `bytes` fail.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  const sighandler_t handler_;
  rlimit before_{};
};

// A file system of `bytes` in memory. Only root can make one; otherwise made() is false.
class SmallDisk {
 public:
  explicit SmallDisk(uint64_t bytes) : made_(Mount(0, bytes)) {}
  ~SmallDisk() {
    if (made_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool made() const { return made_; }
  void Grow(uint64_t bytes) const { EXPECT_TRUE(Mount(MS_REMOUNT, bytes)); }
  const std::string& path() const { return folder_.path(); }

 private:
  bool Mount(unsigned long flags, uint64_t bytes) const {
    const std::string size = "size=" + std::to_string(bytes);
    return mount("tmpfs", folder_.path().c_str(), "tmpfs", flags, size.c_str()) == 0;
  }

  const ScratchFolder folder_;
  const bool made_;
};

}  // namespace dt::test
