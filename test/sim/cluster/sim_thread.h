// A thread of the program under test that waits in virtual time. It and the world's thread hand a
// baton to each other, so that only one of them runs: what a seed draws is what happens.
#pragma once

#include <functional>
#include <semaphore>
#include <thread>

#include "common/base/clock.h"

namespace dt::sim {

class SimThread {
 public:
  // Has an event run at a time, unless the process has ended by then.
  using Timer = std::function<void(TimePoint when, std::function<void()> event)>;
  // `body` begins with the first Resume.
  SimThread(Timer timer, std::function<void()> body);
  // REQUIRES: the body has ended.
  ~SimThread();

  // On the world's thread: runs the body until it waits or ends.
  void Resume();
  // On the world's thread: ends the wait that the body is in, if it is in one.
  void Wake();
  bool ended() const { return ended_; }

  // On the body's thread: returns at `until`, or earlier because of a Wake.
  void WaitUntil(TimePoint until);

 private:
  const Timer timer_;
  std::binary_semaphore to_body_{0}, to_world_{0};
  uint64_t wait_ = 0;  // The number of the latest wait.
  bool waiting_ = false, ended_ = false;
  std::jthread thread_;
};

}  // namespace dt::sim
