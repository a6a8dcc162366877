#include "server/table/page_memory.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include "common/base/memory_end.h"

namespace dt::server {
namespace {

// Smaller blocks come from the heap, because the kernel allows only some 65,000 mappings a process.
constexpr size_t kFromKernelBytes = 1 << 20;
constexpr size_t kHugePage = 2 << 20;

// The kernel promises the alignment of small pages only: asks for more, and gives the ends back.
void* MapAligned(size_t bytes) {
  const size_t asked = bytes + kHugePage;
  void* const mapped = mmap(nullptr, asked, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) EndOutOfMemory(bytes, "rows");
  auto* const begin = static_cast<std::byte*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePage;
  if (before != 0) munmap(begin, before);
  const size_t pages = (bytes + 4095) & ~size_t{4095};
  munmap(begin + before + pages, asked - before - pages);
  return begin + before;
}

}  // namespace

PageMemory PageMemory::Zeroed(size_t bytes, Pages pages) {
  PageMemory memory;
  if (bytes == 0) return memory;
  if (bytes < kFromKernelBytes) {
    memory.size_ = (bytes + 63) & ~size_t{63};
    memory.data_ = std::aligned_alloc(64, memory.size_);
    if (memory.data_ == nullptr) EndOutOfMemory(bytes, "rows");
    std::memset(memory.data_, 0, memory.size_);
    return memory;
  }
  memory.size_ = bytes;
  memory.data_ = MapAligned(bytes);
  if (pages == Pages::kHuge) memory.UseHugePages();
  return memory;
}

PageMemory::~PageMemory() {
  if (data_ == nullptr) return;
  if (size_ < kFromKernelBytes) {
    std::free(data_);
  } else {
    munmap(data_, size_);
  }
}

void PageMemory::UseHugePages() {
  if (size_ >= kHugePage) madvise(data_, size_, MADV_HUGEPAGE);  // A hint, which may fail.
}

void PageMemory::Release(size_t begin, size_t end) {
  if (size_ < kFromKernelBytes) return;
  const size_t first = (begin + kHugePage - 1) / kHugePage * kHugePage;
  const size_t last = end / kHugePage * kHugePage;
  if (first < last) madvise(data() + first, last - first, MADV_DONTNEED);
}

}  // namespace dt::server
