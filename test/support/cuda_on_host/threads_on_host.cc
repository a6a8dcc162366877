// The threads of a block are contexts of one host thread. A thread runs until it waits for others;
// then the next one goes on, or begins. Threads that never wait, which are most, share one stack.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include <ucontext.h>

#include "test/support/cuda_on_host/cuda_runtime.h"

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace dt {

thread_local float dt_shared_floats[48 * 1024 / sizeof(float)];

namespace test {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr unsigned kLanes = 32;

enum class Waits { kNo, kForWarp, kForBlock };

struct Context {
  ucontext_t place;
  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  unsigned thread = 0;  // The thread that this context is running.
  Waits waits = Waits::kNo;
  bool ended = false;
};

class Block {
 public:
  void Run(unsigned threads, void (*body)(const void*), const void* arguments) {
    threads_ = threads;
    begun_ = 0;
    body_ = body;
    arguments_ = arguments;
    // Every other block runs in reverse order, so that sums that depend on the order, and reads of
    // memory that is not written yet, are noticed.
    reverse_ = !reverse_;
    used_ = 0;
    while (Continue()) {
    }
  }
  void Wait(Waits how) {
    Context& own = *current_;
    own.waits = how;
    swapcontext(&own.place, &scheduler_);
  }
  // Returns the other lane's value of this thread's round. Values of two rounds are kept, because
  // other threads may not have read those of the last round yet.
  uint64_t Exchange(unsigned thread, unsigned other, uint64_t own) {
    const uint64_t round = rounds_[thread]++ % 2;
    given_[round][thread] = own;
    Wait(Waits::kForWarp);
    return given_[round][other];
  }

 private:
  static constexpr unsigned kThreadsMax = 1024;

  // Returns false if all threads have ended.
  bool Continue() {
    bool progress = false, ended = true;
    for (size_t i = 0; i < used_; ++i) {
      Context& context = *contexts_[i];
      if (context.ended) continue;
      ended = false;
      if (context.waits != Waits::kNo) continue;
      Enter(context);
      progress = true;
    }
    if (begun_ < threads_) {
      Begin();
      return true;
    }
    if (ended) return false;
    if (progress || Release()) return true;
    std::fprintf(stderr, "CUDA on the host: threads of block %u wait for each other\n", blockIdx.x);
    std::abort();
  }

  void Begin() {
    if (used_ == contexts_.size()) contexts_.push_back(std::make_unique<Context>());
    Context& context = *contexts_[used_++];
    context.ended = false;
    context.waits = Waits::kNo;
    getcontext(&context.place);
    context.place.uc_stack.ss_sp = context.stack.get();
    context.place.uc_stack.ss_size = kStackBytes;
    context.place.uc_link = &scheduler_;
    instance_ = this;
    makecontext(
        &context.place, [] { instance_->Work(); }, 0);
    Enter(context);
  }

  void Enter(Context& context) {
    current_ = &context;
    SetThread(context.thread);
    swapcontext(&scheduler_, &context.place);
  }
  void SetThread(unsigned thread) {
    current_->thread = thread;
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y,
                 thread / (blockDim.x * blockDim.y)};
  }

  // Runs one thread after the other on the entered context.
  void Work() {
    Context& own = *current_;
    while (begun_ < threads_) {
      const unsigned number = begun_++;
      SetThread(reverse_ ? threads_ - 1 - number : number);
      rounds_[own.thread] = 0;
      body_(arguments_);
    }
    own.ended = true;
  }

  // Releases threads that all wait for the same: those of a block if all that have not ended wait
  // for the block, those of a warp if all 32 wait for the warp. Returns false if none is released.
  bool Release() {
    unsigned warps = 0, blocks = 0, running = 0;
    std::vector<unsigned> in_warp(threads_ / kLanes + 1);
    for (Context* c : Running()) {
      ++running;
      if (c->waits == Waits::kForBlock) ++blocks;
      if (c->waits == Waits::kForWarp) ++in_warp[c->thread / kLanes];
    }
    for (Context* c : Running()) {
      const bool whole = in_warp[c->thread / kLanes] == kLanes;
      const bool go = blocks == running || (c->waits == Waits::kForWarp && whole);
      if (go) c->waits = Waits::kNo, ++warps;
    }
    return warps > 0;
  }
  std::vector<Context*> Running() {
    std::vector<Context*> running;
    for (size_t i = 0; i < used_; ++i) {
      if (!contexts_[i]->ended) running.push_back(contexts_[i].get());
    }
    return running;
  }

  static thread_local Block* instance_;

  std::vector<std::unique_ptr<Context>> contexts_;
  size_t used_ = 0;
  ucontext_t scheduler_{};
  Context* current_ = nullptr;
  unsigned threads_ = 0, begun_ = 0;
  bool reverse_ = false;
  void (*body_)(const void*) = nullptr;
  const void* arguments_ = nullptr;
  uint64_t given_[2][kThreadsMax] = {};
  uint64_t rounds_[kThreadsMax] = {};
};
thread_local Block* Block::instance_ = nullptr;

Block& TheBlock() {
  thread_local Block block;
  return block;
}

unsigned ThreadNumber() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

}  // namespace

void RunGrid(const cudaLaunchConfig_t& config, void (*body)(const void*), const void* arguments) {
  gridDim = config.gridDim;
  blockDim = config.blockDim;
  const uint64_t blocks = uint64_t{gridDim.x} * gridDim.y * gridDim.z;
  for (uint64_t b = 0; b < blocks; ++b) {
    blockIdx = {static_cast<unsigned>(b % gridDim.x),
                static_cast<unsigned>(b / gridDim.x % gridDim.y),
                static_cast<unsigned>(b / (uint64_t{gridDim.x} * gridDim.y))};
    TheBlock().Run(blockDim.x * blockDim.y * blockDim.z, body, arguments);
  }
}

uint64_t FromLane(uint64_t own, unsigned lane) {
  const unsigned thread = ThreadNumber();
  return TheBlock().Exchange(thread, thread / kLanes * kLanes + lane, own);
}

}  // namespace test
}  // namespace dt

void __syncthreads() { dt::test::TheBlock().Wait(dt::test::Waits::kForBlock); }
