// One thread that waits for timers, descriptors and other threads. The scheduler runs on it. Uses
// Asio.
#pragma once

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace dt {

class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Every and Watch are called on the loop's thread, or before Run. All callbacks run on the loop's
  // thread, one after the other, and do not throw.
  void Every(Duration period, std::function<void()> body);
  // Calls `body` each time the descriptor becomes readable. The caller owns the descriptor and
  // keeps it open as long as the loop.
  Status Watch(int descriptor, std::function<void()> body);

  // Any thread.
  void Post(std::function<void()> body);
  // Makes Run return after the current callback. Any thread.
  void Stop();

  // Runs until Stop; the calling thread becomes the loop's thread.
  void Run();

  struct Impl;  // In event_loop_asio.h, for other code that uses Asio.
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace dt
