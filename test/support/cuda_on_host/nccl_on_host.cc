// NCCL among the cards of one process: the ranks of a communicator meet in host memory. Sums are in
// the order of the ranks.
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/device/cuda_stream.cuh"
#include "common/device/tensor.h"
#include "test/support/cuda_on_host/cuda_on_host.h"

namespace dt::test {
namespace {

// The memory that a rank brings to a meeting.
struct Brought {
  const void* in = nullptr;
  size_t bytes = 0;
};

// The ranks of a communicator.
class World {
 public:
  explicit World(int32_t ranks) : ranks_(static_cast<size_t>(ranks)) {}

  void Join() {
    MutexLock lock(mutex_);
    ++joined_;
    changed_.NotifyAll();
  }
  bool complete() {
    MutexLock lock(mutex_);
    return joined_ == ranks_;
  }
  void Finish() {
    MutexLock lock(mutex_);
    ++finished_;
  }
  bool finished() {
    MutexLock lock(mutex_);
    return finished_ == ranks_;
  }
  // Every wait ends, and all ranks see an error.
  void Leave() {
    MutexLock lock(mutex_);
    left_ = true;
    changed_.NotifyAll();
  }
  bool left() {
    MutexLock lock(mutex_);
    return left_;
  }
  size_t ranks() const { return ranks_; }

  // Returns what all ranks have brought to meeting `number`; nothing if a rank has left. What they
  // brought stays as it is until the next meeting.
  std::vector<Brought> Meet(uint64_t number, size_t rank, const Brought& own) {
    MutexLock lock(mutex_);
    std::map<size_t, Brought>& meeting = meetings_[number];
    meeting[rank] = own;
    changed_.NotifyAll();
    while (!left_ && meetings_[number].size() < ranks_) changed_.Wait(lock);
    std::vector<Brought> all;
    if (left_) return all;
    for (const auto& [r, brought] : meetings_[number]) all.push_back(brought);
    return all;
  }

  void Send(size_t from, size_t to, std::vector<std::byte> bytes) {
    MutexLock lock(mutex_);
    mail_[{from, to}].push_back(std::move(bytes));
    changed_.NotifyAll();
  }
  // Empty if a rank has left.
  std::vector<std::byte> Receive(size_t from, size_t to) {
    MutexLock lock(mutex_);
    std::deque<std::vector<std::byte>>& box = mail_[{from, to}];
    while (!left_ && box.empty()) changed_.Wait(lock);
    if (box.empty()) return {};
    std::vector<std::byte> bytes = std::move(box.front());
    box.pop_front();
    return bytes;
  }

 private:
  const size_t ranks_;
  Mutex mutex_;
  Condition changed_;
  size_t joined_ DT_GUARDED_BY(mutex_) = 0, finished_ DT_GUARDED_BY(mutex_) = 0;
  bool left_ DT_GUARDED_BY(mutex_) = false;
  std::map<uint64_t, std::map<size_t, Brought>> meetings_ DT_GUARDED_BY(mutex_);
  std::map<std::pair<size_t, size_t>, std::deque<std::vector<std::byte>>> mail_
      DT_GUARDED_BY(mutex_);
};

struct Worlds {
  Mutex mutex;
  uint64_t ids DT_GUARDED_BY(mutex) = 0;
  std::map<std::string, std::shared_ptr<World>> by_id DT_GUARDED_BY(mutex);
};
Worlds& TheWorlds() {
  static Worlds worlds;
  return worlds;
}

}  // namespace
}  // namespace dt::test

namespace dt {

struct NcclComm {
  std::shared_ptr<test::World> world;
  size_t rank = 0;
  uint64_t meetings = 0;  // Begun so far; the same on all ranks.
  bool finishes = false;
};

namespace test {
namespace {

// The calls of a group: they run as one, what is sent first.
struct Group {
  int depth = 0;
  CudaStream* stream = nullptr;
  std::vector<std::function<void()>> sends, others;
};
thread_local Group the_group;

void Add(CudaStream* stream, bool sends, std::function<void()> work) {
  if (the_group.depth == 0) return Give(stream->stream, std::move(work));
  the_group.stream = stream;
  (sends ? the_group.sends : the_group.others).push_back(std::move(work));
}
CudaError EndGroup() {
  if (--the_group.depth > 0 || the_group.stream == nullptr) return nullptr;
  Group ended;
  std::swap(ended, the_group);
  Give(ended.stream->stream, [group = std::move(ended)] {
    for (const auto& work : group.sends) work();
    for (const auto& work : group.others) work();
  });
  return nullptr;
}

template <class T>
void Join(const std::vector<Brought>& terms, size_t begin, bool max, std::vector<std::byte>& out) {
  auto* const sum = reinterpret_cast<T*>(out.data());
  for (size_t i = 0; i < out.size() / sizeof(T); ++i) {
    for (size_t r = 0; r < terms.size(); ++r) {
      const T x = (static_cast<const T*>(terms[r].in))[begin / sizeof(T) + i];
      sum[i] = r == 0 ? x : max ? std::max(sum[i], x) : sum[i] + x;
    }
  }
}

// result(what all brought): this rank's result; it is written when all have read.
template <class MakeResult>
CudaError Meeting(NcclComm* comm, const Brought& own, void* out, CudaStream* stream,
                  MakeResult result) {
  const uint64_t number = comm->meetings;
  comm->meetings += 2;
  Add(stream, false, [world = comm->world, rank = comm->rank, own, out, number, result] {
    const std::vector<Brought> all = world->Meet(number, rank, own);
    if (all.empty()) return;
    for (const Brought& brought : all) DT_CHECK(brought.bytes == own.bytes);
    const std::vector<std::byte> made = result(all);
    if (world->Meet(number + 1, rank, own).empty() || out == nullptr) return;
    std::memcpy(out, made.data(), made.size());
  });
  return nullptr;
}

std::vector<std::byte> Reduced(const std::vector<Brought>& all, size_t begin,
                               const NcclReduce& reduce) {
  const auto type = static_cast<DType>(reduce.count.type);
  std::vector<std::byte> made(reduce.count.elements * SizeOf(type));
  DT_CHECK(type == DType::kF32 || type == DType::kF64);
  if (type == DType::kF32) Join<float>(all, begin, reduce.max, made);
  if (type == DType::kF64) Join<double>(all, begin, reduce.max, made);
  return made;
}
size_t BytesOf(NcclCount count) { return count.elements * SizeOf(static_cast<DType>(count.type)); }

CudaError MakeId(NcclId* out) {
  Worlds& worlds = TheWorlds();
  MutexLock lock(worlds.mutex);
  std::snprintf(out->bytes, sizeof out->bytes, "%llu",
                static_cast<unsigned long long>(++worlds.ids));
  return nullptr;
}

CudaError JoinWorld(int32_t device, int32_t ranks, int32_t rank, const NcclId* id, NcclComm** out) {
  DT_CHECK(device != 0 && rank < ranks);  // Card 0 would wait for others on the caller's thread.
  Worlds& worlds = TheWorlds();
  MutexLock lock(worlds.mutex);
  std::shared_ptr<World>& world = worlds.by_id[std::string(id->bytes, sizeof id->bytes)];
  if (world == nullptr) world = std::make_shared<World>(ranks);
  world->Join();
  *out = std::make_unique<NcclComm>(NcclComm{world, static_cast<size_t>(rank)}).release();
  return nullptr;
}

CudaError State(NcclComm* comm, bool* busy) {
  *busy = comm->finishes ? !comm->world->finished() : !comm->world->complete();
  return comm->world->left() ? "a rank has left" : nullptr;
}

CudaError Finish(NcclComm* comm) {
  comm->finishes = true;
  comm->world->Finish();
  return nullptr;
}
void Free(NcclComm* comm) { std::unique_ptr<NcclComm>(comm).reset(); }
void Abort(NcclComm* comm) {
  comm->world->Leave();
  std::unique_ptr<NcclComm>(comm).reset();
}

CudaError AllReduce(NcclComm* comm, const NcclReduce& r, CudaStream* stream) {
  return Meeting(comm, {r.in, BytesOf(r.count)}, r.out, stream,
                 [r](const std::vector<Brought>& all) { return Reduced(all, 0, r); });
}
CudaError ReduceScatter(NcclComm* comm, const NcclReduce& r, CudaStream* stream) {
  const size_t bytes = BytesOf(r.count), begin = comm->rank * bytes;
  const Brought own{r.in, bytes * comm->world->ranks()};
  return Meeting(comm, own, r.out, stream,
                 [r, begin](const std::vector<Brought>& all) { return Reduced(all, begin, r); });
}
CudaError Reduce(NcclComm* comm, const NcclReduce& r, int32_t root, CudaStream* stream) {
  void* const to = comm->rank == static_cast<size_t>(root) ? r.out : nullptr;
  return Meeting(comm, {r.in, BytesOf(r.count)}, to, stream,
                 [r](const std::vector<Brought>& all) { return Reduced(all, 0, r); });
}
CudaError AllGather(NcclComm* comm, const void* in, void* out, NcclCount count,
                    CudaStream* stream) {
  return Meeting(comm, {in, BytesOf(count)}, out, stream, [](const std::vector<Brought>& all) {
    std::vector<std::byte> made;
    for (const Brought& part : all) {
      const auto* const begin = static_cast<const std::byte*>(part.in);
      made.insert(made.end(), begin, begin + part.bytes);
    }
    return made;
  });
}
CudaError SendBytes(NcclComm* comm, const void* in, size_t bytes, int32_t to, CudaStream* stream) {
  const auto* const begin = static_cast<const std::byte*>(in);
  Add(stream, true, [world = comm->world, from = comm->rank, to, begin, bytes] {
    world->Send(from, static_cast<size_t>(to), {begin, begin + bytes});
  });
  return nullptr;
}
CudaError ReceiveBytes(NcclComm* comm, void* out, size_t bytes, int32_t from, CudaStream* stream) {
  Add(stream, false, [world = comm->world, to = comm->rank, from, out, bytes] {
    const std::vector<std::byte> got = world->Receive(static_cast<size_t>(from), to);
    if (got.empty()) return;
    DT_CHECK(got.size() == bytes);
    std::memcpy(out, got.data(), bytes);
  });
  return nullptr;
}

}  // namespace

NcclTable NcclOnHost() {
  return {.load = []() -> CudaError { return nullptr; },
          .make_id = MakeId,
          .join = JoinWorld,
          .state = State,
          .finish = Finish,
          .free = Free,
          .abort = Abort,
          .begin_group = []() -> CudaError {
            ++the_group.depth;
            return nullptr;
          },
          .end_group = EndGroup,
          .all_reduce = AllReduce,
          .reduce_scatter = ReduceScatter,
          .reduce = Reduce,
          .all_gather = AllGather,
          .send = SendBytes,
          .receive = ReceiveBytes};
}

}  // namespace test
}  // namespace dt
