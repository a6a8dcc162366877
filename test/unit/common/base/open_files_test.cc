#include "common/base/open_files.h"

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(OpenFiles, AreRaisedToWhatTheHostAllows) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 200;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_EQ(OpenFilesMax(), 200);
  RaiseOpenFilesMax();
  EXPECT_EQ(OpenFilesMax(), before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace dt
