// Goal: a thread has the name that it was given, and a long name is cut instead of refused.
#include "common/base/thread_name.h"

#include <pthread.h>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace dt {
namespace {

std::string NameAfter(const char* given) {
  char name[16] = {};
  std::jthread([&] {
    NameThread(given);
    pthread_getname_np(pthread_self(), name, sizeof(name));
  }).join();
  return name;
}

TEST(ThreadName, IsTheOneGivenOrItsBeginning) {
  EXPECT_EQ(NameAfter("control-link"), "control-link");
  EXPECT_EQ(NameAfter("stream-communication"), "stream-communic");
}

}  // namespace
}  // namespace dt
