#include "test/support/cuda_on_host/cuda_on_host.h"

#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/pause.h"
#include "common/base/philox.h"
#include "common/device/cuda_stream.cuh"
#include "ops/cuda/kernels.cuh"

// A stream runs its work in order. Only one thread may give work and capture.
struct CUstream_st {
 public:
  using Work = std::function<void()>;

  explicit CUstream_st(int32_t card, uint64_t number) : card_(card), number_(number) {
    if (card != 0) thread_ = std::thread([this] { Run(); });
  }
  ~CUstream_st() {
    End();
    if (thread_.joinable()) thread_.join();
  }
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  void Give(Work work) {
    if (captured_.has_value()) {
      captured_->push_back(std::move(work));
    } else if (card_ == 0) {
      work();
    } else {
      Add(std::move(work));
    }
  }
  // Waits until all given work is done.
  void Drain() {
    dt::MutexLock lock(mutex_);
    while (!waiting_.empty()) changed_.Wait(lock);
  }
  bool captures() const { return captured_.has_value(); }
  void Capture() { captured_.emplace(); }
  std::vector<Work> EndCapture() { return *std::exchange(captured_, std::nullopt); }

 private:
  void End() {
    dt::MutexLock lock(mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  void Add(Work work) {
    dt::MutexLock lock(mutex_);
    waiting_.push_back(std::move(work));
    changed_.NotifyAll();
  }
  void RemoveFirst() {
    dt::MutexLock lock(mutex_);
    waiting_.pop_front();
    changed_.NotifyAll();
  }
  void Run() {
    uint64_t n = 0;
    while (Work* const work = Next()) {
      DelayAtRandom(n++);
      (*work)();  // Meanwhile other threads only append to the queue, so the pointer stays valid.
      RemoveFirst();
    }
  }
  // Waits for work. Returns null when the stream ends and nothing is left.
  Work* Next() {
    dt::MutexLock lock(mutex_);
    while (!ends_ && waiting_.empty()) changed_.Wait(lock);
    return waiting_.empty() ? nullptr : &waiting_.front();
  }
  void DelayAtRandom(uint64_t n) const {
    const dt::PhiloxBlock draw = dt::Philox(static_cast<uint64_t>(card_), number_, n);
    if (draw[0] % 8 != 0) return;
    dt::PauseUntil(dt::SystemClock().Now() + std::chrono::microseconds(draw[1] % 300));
  }
  const int32_t card_;
  const uint64_t number_;
  std::optional<std::vector<Work>> captured_;  // Used only by the thread that gives work.
  dt::Mutex mutex_;
  dt::Condition changed_;
  // A deque, because references must stay valid while work is appended.
  std::deque<Work> waiting_ DT_GUARDED_BY(mutex_);
  bool ends_ DT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

namespace dt {
namespace test {
namespace {

// A point in a stream's work.
class Mark {
 public:
  void Set() {
    MutexLock lock(mutex_);
    done_ = true;
    changed_.NotifyAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!done_) changed_.Wait(lock);
  }
  bool done() {
    MutexLock lock(mutex_);
    return done_;
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool done_ DT_GUARDED_BY(mutex_) = false;
};

}  // namespace
}  // namespace test

// An event; it counts as reached if it was never recorded.
struct CudaEvent {
  Mutex mutex;
  std::shared_ptr<test::Mark> last DT_GUARDED_BY(mutex);

  std::shared_ptr<test::Mark> Last() {
    MutexLock lock(mutex);
    return last;
  }
};
struct CudaGraph {
  std::vector<CUstream_st::Work> work;
};
CudaStream::~CudaStream() { std::unique_ptr<CUstream_st>(stream).reset(); }

namespace test {
namespace {

constexpr CudaError kWhileCapturing = "not while the stream captures";

// Ranges of memory by their first address.
class Pieces {
 public:
  void Add(const void* begin, size_t bytes) {
    MutexLock lock(mutex_);
    pieces_[static_cast<const std::byte*>(begin)] = bytes;
  }
  void Remove(const void* begin) {
    MutexLock lock(mutex_);
    DT_CHECK(pieces_.erase(static_cast<const std::byte*>(begin)) == 1);
  }
  // Returns true if one range contains all these bytes.
  bool Hold(const void* begin, size_t bytes) {
    const auto* const at = static_cast<const std::byte*>(begin);
    MutexLock lock(mutex_);
    auto piece = pieces_.upper_bound(at);
    if (piece == pieces_.begin()) return false;
    --piece;
    return at + bytes <= piece->first + piece->second;
  }

 private:
  Mutex mutex_;
  std::map<const std::byte*, size_t> pieces_ DT_GUARDED_BY(mutex_);
};

struct Cards {
  Pieces device, pinned;
  std::atomic<uint64_t> streams{0}, allocations{0}, captures{0}, launches{0}, waiting_copies{0};
};
Cards& TheCards() {
  static Cards cards;
  return cards;
}

CudaError Take(Pieces& pieces, size_t bytes, void** out) {
  ++TheCards().allocations;
  const size_t whole = (bytes + 4096) / 4096 * 4096;
  *out = std::aligned_alloc(4096, whole);
  if (*out == nullptr) return "no memory";
  std::memset(*out, 0xff, whole);
  pieces.Add(*out, bytes);
  return nullptr;
}
CudaError GiveBack(Pieces& pieces, void* memory) {
  if (memory == nullptr) return nullptr;
  pieces.Remove(memory);
  std::free(memory);
  return nullptr;
}

CudaError CopyToDevice(CudaStream* stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return nullptr;
  DT_CHECK(TheCards().device.Hold(to, bytes) && !TheCards().device.Hold(from, 1));
  if (TheCards().pinned.Hold(from, bytes)) {
    Give(stream->stream, [=] { std::memcpy(to, from, bytes); });
    return nullptr;
  }
  DT_CHECK(!stream->stream->captures());
  ++TheCards().waiting_copies;
  const auto* const begin = static_cast<const std::byte*>(from);
  Give(stream->stream, [to, content = std::vector<std::byte>(begin, begin + bytes)] {
    std::memcpy(to, content.data(), content.size());
  });
  return nullptr;
}

CudaError CopyToHost(CudaStream* stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return nullptr;
  DT_CHECK(TheCards().device.Hold(from, bytes) && !TheCards().device.Hold(to, 1));
  Give(stream->stream, [=] { std::memcpy(to, from, bytes); });
  if (TheCards().pinned.Hold(to, bytes)) return nullptr;
  DT_CHECK(!stream->stream->captures());
  ++TheCards().waiting_copies;
  stream->stream->Drain();
  return nullptr;
}

CudaError CopyOnDevice(CudaStream* stream, void* to, const void* from, size_t bytes) {
  if (bytes == 0) return nullptr;
  DT_CHECK(TheCards().device.Hold(to, bytes) && TheCards().device.Hold(from, bytes));
  Give(stream->stream, [=] { std::memmove(to, from, bytes); });
  return nullptr;
}

CudaError CopyRowsOnDevice(CudaStream* stream, const CudaRows& copy) {
  if (copy.bytes == 0 || copy.rows == 0) return nullptr;
  const size_t last = copy.rows - 1;
  DT_CHECK(TheCards().device.Hold(copy.to, last * copy.to_pitch + copy.bytes) &&
           TheCards().device.Hold(copy.from, last * copy.from_pitch + copy.bytes));
  Give(stream->stream, [copy] {
    for (size_t r = 0; r < copy.rows; ++r) {
      std::memcpy(static_cast<std::byte*>(copy.to) + r * copy.to_pitch,
                  static_cast<const std::byte*>(copy.from) + r * copy.from_pitch, copy.bytes);
    }
  });
  return nullptr;
}

CudaError MakeStream(int32_t device, CudaStream** out) {
  auto made = std::make_unique<CudaStream>(device);
  made->stream = std::make_unique<CUstream_st>(device, TheCards().streams++).release();
  *out = made.release();
  return nullptr;
}

CudaError Record(CudaStream* stream, CudaEvent* event) {
  if (stream->stream->captures()) return kWhileCapturing;
  auto mark = std::make_shared<Mark>();
  {
    MutexLock lock(event->mutex);
    event->last = mark;
  }
  Give(stream->stream, [mark] { mark->Set(); });
  return nullptr;
}
CudaError WaitFor(CudaStream* stream, CudaEvent* event) {
  if (stream->stream->captures()) return kWhileCapturing;
  const std::shared_ptr<Mark> mark = event->Last();
  if (mark != nullptr) Give(stream->stream, [mark] { mark->Wait(); });
  return nullptr;
}
CudaError Query(CudaEvent* event, bool* done) {
  const std::shared_ptr<Mark> mark = event->Last();
  *done = mark == nullptr || mark->done();
  return nullptr;
}

CudaError BeginCapture(CudaStream* stream) {
  if (stream->stream->captures()) return kWhileCapturing;
  ++TheCards().captures;
  stream->stream->Capture();
  return nullptr;
}
CudaError EndCapture(CudaStream* stream, CudaGraph** out) {
  if (!stream->stream->captures()) return "the stream does not capture";
  *out = std::make_unique<CudaGraph>(stream->stream->EndCapture()).release();
  return nullptr;
}
CudaError LaunchGraph(CudaStream* stream, CudaGraph* graph) {
  ++TheCards().launches;
  for (const CUstream_st::Work& work : graph->work) Give(stream->stream, work);
  return nullptr;
}

CudaError MemoryInfo(int32_t, uint64_t* free_bytes, uint64_t* total_bytes) {
  *free_bytes = *total_bytes = uint64_t{1} << 30;
  return nullptr;
}

}  // namespace

void Give(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  stream->Give(std::move(work));
}

CudaTable TableOnHost() {
  CudaTable table{
      .version = kCudaTableVersion,
      .allocate = [](int32_t, size_t bytes,
                     void** out) { return Take(TheCards().device, bytes, out); },
      .free = [](int32_t, void* memory) { return GiveBack(TheCards().device, memory); },
      .allocate_pinned = [](int32_t, size_t bytes,
                            void** out) { return Take(TheCards().pinned, bytes, out); },
      .free_pinned = [](void* memory) { return GiveBack(TheCards().pinned, memory); },
      .memory_info = MemoryInfo,
      .make_stream = MakeStream,
      .destroy_stream = [](CudaStream* stream) { std::unique_ptr<CudaStream>(stream).reset(); },
      .copy_to_device = CopyToDevice,
      .copy_to_host = CopyToHost,
      .copy_on_device = CopyOnDevice,
      .copy_rows_on_device = CopyRowsOnDevice,
      .record = Record,
      .wait_for = WaitFor,
      .make_event = [](int32_t, CudaEvent** out) -> CudaError {
        *out = std::make_unique<CudaEvent>().release();
        return nullptr;
      },
      .destroy_event = [](CudaEvent* event) { std::unique_ptr<CudaEvent>(event).reset(); },
      .query = Query,
      .begin_capture = BeginCapture,
      .end_capture = EndCapture,
      .launch_graph = LaunchGraph,
      .destroy_graph = [](CudaGraph* graph) { std::unique_ptr<CudaGraph>(graph).reset(); },
      .nccl = NcclOnHost(),
      .find_kernel = FindCudaKernel};
  return table;
}

std::unique_ptr<CudaAccelerator> OpenCardOnHost(int32_t card) {
  return CudaAccelerator::Over(TableOnHost(), {.kind = DeviceKind::kCuda,
                                               .index = card,
                                               .name = "card on the host",
                                               .memory_bytes = uint64_t{1} << 30});
}

UseOfCards UseOnHost() {
  const Cards& cards = TheCards();
  return {.allocations = cards.allocations,
          .captures = cards.captures,
          .graph_launches = cards.launches,
          .waiting_copies = cards.waiting_copies};
}

}  // namespace test
}  // namespace dt
