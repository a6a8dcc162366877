// The Asio part of an EventLoop. Only for code that uses Asio itself.
#pragma once

#include <list>
#include <utility>  // Before Asio: 1.74 forgets it.

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "common/runtime/event_loop.h"

namespace dt {

struct EventLoop::Impl {
  struct Timer {
    boost::asio::steady_timer timer;
    Duration period;
    std::function<void()> body;
    void Arm();
  };
  struct Watched {
    boost::asio::posix::stream_descriptor descriptor;
    std::function<void()> body;
    void Arm();
  };
  boost::asio::io_context context{1};
  std::list<Timer> timers;
  std::list<Watched> watched;
};

}  // namespace dt
