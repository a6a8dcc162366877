// One thread that waits for timers, descriptors and other threads: what the scheduler runs on. Over
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

  // The loop's thread, or before Run. Callbacks run on the loop's thread, one after the other, and
  // do not throw.
  void Every(Duration period, std::function<void()> body);
  // Each time the descriptor becomes readable. It stays the caller's, and open as long as the loop.
  Status Watch(int descriptor, std::function<void()> body);

  // Any thread.
  void Post(std::function<void()> body);
  // Run returns after what is being called. Any thread.
  void Stop();

  // Until Stop. The calling thread is the loop's.
  void Run();

  struct Impl;  // event_loop_asio.h: for what else speaks Asio.
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace dt
