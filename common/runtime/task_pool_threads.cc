// TaskPool for ThreadSanitizer builds, in place of task_pool.cc. Debian builds oneTBB without
// instrumentation, so ThreadSanitizer would take its tasks for races, and could not check what they
// call.
#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/thread_name.h"
#include "common/runtime/task_pool.h"

namespace dt {
namespace {

using Body = absl::FunctionRef<void(size_t begin, size_t end)>;

struct Loop {
  size_t n, grain, pieces;
  Body body;  // Dangles once all pieces are done.
  std::atomic<size_t> next = 0, done = 0;

  void Work() {
    for (size_t piece = next++; piece < pieces; piece = next++) {
      body(piece * grain, std::min(n, (piece + 1) * grain));
      if (++done == pieces) done.notify_all();
    }
  }
};

}  // namespace

struct TaskPool::Impl {
  explicit Impl(size_t count) {
    for (size_t i = 1; i < count; ++i) helpers.emplace_back([this] { Help(); });
  }
  ~Impl() {
    MutexLock lock(mutex);
    ends = true;
    changed.NotifyAll();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Help() {
    NameThread("task-pool");
    MutexLock lock(mutex);
    for (;;) {
      while (loops.empty() && !ends) changed.Wait(lock);
      if (loops.empty()) return;
      const std::shared_ptr<Loop> loop = std::move(loops.front());
      loops.pop_front();
      lock.Unlock();
      loop->Work();
      lock.Lock();
    }
  }
  void Offer(const std::shared_ptr<Loop>& loop) {
    MutexLock lock(mutex);
    for (size_t i = 1; i < std::min(loop->pieces, helpers.size() + 1); ++i) loops.push_back(loop);
    changed.NotifyAll();
  }

  Mutex mutex;
  Condition changed;
  std::deque<std::shared_ptr<Loop>> loops DT_GUARDED_BY(mutex);  // Each waits for a helper.
  bool ends DT_GUARDED_BY(mutex) = false;
  std::vector<std::jthread> helpers;  // The last member, because they use the others.
};

TaskPool::TaskPool(uint32_t threads)
    : impl_(std::make_unique<Impl>(threads == 0 ? std::max(1u, std::thread::hardware_concurrency())
                                                : threads)) {}
TaskPool::~TaskPool() = default;

uint32_t TaskPool::threads() const { return static_cast<uint32_t>(impl_->helpers.size() + 1); }

void TaskPool::ParallelFor(size_t n, size_t grain, Body body) {
  DT_CHECK(grain > 0);
  const size_t pieces = (n + grain - 1) / grain;
  if (pieces == 0) return;
  if (pieces == 1) return body(0, n);
  const auto loop = std::make_shared<Loop>(n, grain, pieces, body);
  impl_->Offer(loop);
  loop->Work();
  for (size_t done = loop->done; done < pieces; done = loop->done) loop->done.wait(done);
}

}  // namespace dt
