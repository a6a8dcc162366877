#include "common/net/shm/shm_arena.h"

#include <iterator>
#include <sys/resource.h>

#include "common/base/text.h"
#include "common/net/shm/shm_segment.h"

namespace dt {
namespace {

constexpr size_t kAlignment = 64;
// Each connection maps the arena of its peer.
constexpr size_t kAddressesMin = 64 * kArenaBytes;

size_t Rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Result<std::shared_ptr<ShmArena>> ShmArena::Create() {
  rlimit addresses{};
  if (getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur < kAddressesMin) {
    return Unavailable("it takes addresses of {}, and this process may have {} (ulimit -v)",
                       BytesText(kAddressesMin), BytesText(addresses.rlim_cur));
  }
  DT_TRY(SharedMemory memory,
         SharedMemory::Create("dovetail-frames", kArenaBytes, SharedMemory::Access::kRead));
  DT_TRY_STATUS(memory.ReadOnlyFd().status());
  return std::make_shared<ShmArena>(std::move(memory));
}

ShmArena::ShmArena(SharedMemory memory)
    : memory_(std::move(memory)), free_{{size_t{0}, kArenaBytes}} {}

size_t ShmArena::bytes_min() const { return kShmInlineBytesMax + 1; }

// Takes the first range that fits, so that touched pages are reused before new ones are allocated.
std::byte* ShmArena::Allocate(size_t bytes) {
  const size_t size = Rounded(bytes);
  MutexLock lock(mutex_);
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const auto [offset, there] = *at;
    if (there < size) continue;
    free_.erase(at);
    if (there > size) free_[offset + size] = there - size;
    return memory_.data() + offset;
  }
  return nullptr;
}

void ShmArena::Free(std::byte* memory, size_t bytes) {
  MutexLock lock(mutex_);
  size_t begin = static_cast<size_t>(memory - memory_.data());
  size_t end = begin + Rounded(bytes);
  const auto behind = free_.lower_bound(begin);
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == begin) {
      begin = before->first;
      free_.erase(before);
    }
  }
  if (behind != free_.end() && behind->first == end) {
    end += behind->second;
    free_.erase(behind);
  }
  free_[begin] = end - begin;
}

std::optional<size_t> ShmArena::OffsetOf(std::span<const std::byte> bytes) const {
  const std::byte* const base = memory_.data();
  if (bytes.data() < base || bytes.data() >= base + kArenaBytes) return {};
  return static_cast<size_t>(bytes.data() - base);
}

std::shared_ptr<std::atomic<size_t>> ShmArena::LentTo(pid_t peer) {
  MutexLock lock(mutex_);
  std::erase_if(lent_, [](const auto& of) { return of.second.expired(); });
  std::shared_ptr<std::atomic<size_t>> lent = lent_[peer].lock();
  if (lent == nullptr || peer == 0) {
    lent_[peer] = lent = std::make_shared<std::atomic<size_t>>(0);
  }
  return lent;
}

}  // namespace dt
