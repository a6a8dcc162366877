#include "common/runtime/event_loop.h"

#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "common/runtime/event_loop_asio.h"

namespace dt {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

void EventLoop::Impl::Timer::Arm() {
  timer.expires_after(period);
  timer.async_wait([this](const ErrorCode& error) {
    if (error) return;
    body();
    Arm();
  });
}

void EventLoop::Impl::Watched::Arm() {
  descriptor.async_wait(asio::posix::stream_descriptor::wait_read, [this](const ErrorCode& error) {
    if (error) return;
    body();
    Arm();
  });
}

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}

EventLoop::~EventLoop() {
  for (Impl::Watched& watched : impl_->watched) watched.descriptor.release();
}

void EventLoop::Every(Duration period, std::function<void()> body) {
  impl_->timers.push_back({asio::steady_timer(impl_->context), period, std::move(body)});
  impl_->timers.back().Arm();
}

Status EventLoop::Watch(int descriptor, std::function<void()> body) {
  impl_->watched.push_back({asio::posix::stream_descriptor(impl_->context), std::move(body)});
  ErrorCode error;
  impl_->watched.back().descriptor.assign(descriptor, error);
  if (error) {
    impl_->watched.pop_back();
    return Unavailable("descriptor {} cannot be watched: {}", descriptor, error.message());
  }
  impl_->watched.back().Arm();
  return OkStatus();
}

void EventLoop::Post(std::function<void()> body) { asio::post(impl_->context, std::move(body)); }

void EventLoop::Stop() { impl_->context.stop(); }

void EventLoop::Run() {
  const auto work = asio::make_work_guard(impl_->context);
  impl_->context.run();
}

}  // namespace dt
