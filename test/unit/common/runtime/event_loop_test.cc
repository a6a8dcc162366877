#include "common/runtime/event_loop.h"

#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

namespace dt {
namespace {

TEST(EventLoop, TimersRunAgainAndAgain) {
  EventLoop loop;
  int ticks = 0;
  loop.Every(milliseconds(1), [&] {
    if (++ticks == 5) loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(ticks, 5);
}

TEST(EventLoop, PostsFromOtherThreadsRunOnTheLoops) {
  EventLoop loop;
  const std::thread::id here = std::this_thread::get_id();
  std::thread::id ran;
  std::jthread other([&] {
    loop.Post([&] {
      ran = std::this_thread::get_id();
      loop.Stop();
    });
  });
  loop.Run();
  EXPECT_EQ(ran, here);
}

TEST(EventLoop, WatchedDescriptorsWakeItAndStayOpen) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::string read_bytes;
  {
    EventLoop loop;
    ASSERT_TRUE(loop.Watch(ends[0],
                           [&] {
                             char byte = 0;
                             ASSERT_EQ(read(ends[0], &byte, 1), 1);
                             read_bytes += byte;
                             if (read_bytes == "ab") loop.Stop();
                           })
                    .ok());
    std::jthread writer([&] { EXPECT_EQ(write(ends[1], "ab", 2), 2); });
    loop.Run();
  }
  EXPECT_EQ(read_bytes, "ab");
  EXPECT_EQ(write(ends[1], "c", 1), 1) << "the loop does not close what it watched";
  close(ends[0]);
  close(ends[1]);
}

TEST(EventLoop, ADescriptorThatIsNoneIsAnError) {
  EventLoop loop;
  EXPECT_FALSE(loop.Watch(1 << 20, [] {}).ok());
}

}  // namespace
}  // namespace dt
