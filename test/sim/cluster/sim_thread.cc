#include "test/sim/cluster/sim_thread.h"

#include "common/base/check.h"

namespace dt::sim {

SimThread::SimThread(Timer timer, std::function<void()> body)
    : timer_(std::move(timer)), thread_([this, body = std::move(body)] {
        to_body_.acquire();
        body();
        ended_ = true;
        to_world_.release();
      }) {}

SimThread::~SimThread() { DT_CHECK(ended_); }

void SimThread::Resume() {
  DT_CHECK(!ended_);
  waiting_ = false;
  to_body_.release();
  to_world_.acquire();
}

void SimThread::Wake() {
  if (waiting_ && !ended_) Resume();
}

void SimThread::WaitUntil(TimePoint until) {
  waiting_ = true;
  timer_(until, [this, wait = ++wait_] {
    if (wait == wait_) Wake();
  });
  to_world_.release();
  to_body_.acquire();
}

}  // namespace dt::sim
