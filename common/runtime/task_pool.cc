#include "common/runtime/task_pool.h"

#include <algorithm>

#ifdef __SANITIZE_THREAD__
#include <atomic>
#include <thread>
#include <vector>
#endif

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "common/base/check.h"

namespace dt {
namespace {

// Calls run(piece) once for each of `pieces`.
#ifdef __SANITIZE_THREAD__
// With threads of its own, because Debian builds oneTBB without instrumentation: ThreadSanitizer
// would take its tasks for races, and could not check what `run` does.
template <class Run>
void RunPieces(tbb::task_arena& arena, size_t pieces, const Run& run) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t piece = next++; piece < pieces; piece = next++) run(piece);
  };
  const size_t threads = std::min(pieces, static_cast<size_t>(arena.max_concurrency()));
  std::vector<std::jthread> others;
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}
#else
template <class Run>
void RunPieces(tbb::task_arena& arena, size_t pieces, const Run& run) {
  arena.execute([&] { tbb::parallel_for(size_t{0}, pieces, run, tbb::simple_partitioner()); });
}
#endif

}  // namespace

struct TaskPool::Impl {
  explicit Impl(int threads) : arena(threads) {}
  tbb::task_arena arena;
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
  RunPieces(impl_->arena, pieces,
            [&](size_t piece) { body(piece * grain, std::min(n, (piece + 1) * grain)); });
}

}  // namespace dt
