#include "common/runtime/task_pool.h"

#include <algorithm>

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include "common/base/check.h"
#include "common/base/thread_name.h"
#include "common/runtime/work_span.h"

namespace dt {

namespace {

constinit WorkKind kIdleWork{"task pool: between tasks"};

// Names the threads of oneTBB, and the time that they spend looking for tasks, here or elsewhere.
class IdleThreads : public tbb::task_scheduler_observer {
 public:
  explicit IdleThreads(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) {
    observe(true);
  }
  ~IdleThreads() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override {
    if (!is_worker) return;
    NameThread("task-pool");
    WorkSpan::Set(kIdleWork);
  }
};

}  // namespace

struct TaskPool::Impl {
  explicit Impl(int threads) : arena(threads), idle(arena) {}
  tbb::task_arena arena;
  IdleThreads idle;
};

TaskPool::TaskPool(uint32_t threads)
    : impl_(std::make_unique<Impl>(threads == 0 ? tbb::task_arena::automatic
                                                : static_cast<int>(threads))) {}
TaskPool::~TaskPool() = default;

uint32_t TaskPool::threads() const { return static_cast<uint32_t>(impl_->arena.max_concurrency()); }

void TaskPool::ParallelFor(size_t n, size_t grain,
                           absl::FunctionRef<void(size_t begin, size_t end)> body) {
  DT_CHECK(grain > 0);
  const size_t pieces = (n + grain - 1) / grain;
  if (pieces == 0) return;
  if (pieces == 1) return body(0, n);
  WorkKind& work = WorkSpan::current();
  impl_->arena.execute([&] {
    const WorkSpan idle(kIdleWork);  // Awaits the last pieces of other threads.
    tbb::parallel_for(
        size_t{0}, pieces,
        [&](size_t piece) {
          const WorkSpan span(work);
          body(piece * grain, std::min(n, (piece + 1) * grain));
        },
        tbb::simple_partitioner());
  });
}

}  // namespace dt
