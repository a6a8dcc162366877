#include "server/table/page_memory.h"

#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include "common/base/check.h"

namespace dt::server {
namespace {

constexpr size_t kFromKernelBytes = 1 << 20;  // The kernel allows some 65,000 mappings a process.
constexpr size_t kHugePage = 2 << 20;

}  // namespace

PageMemory PageMemory::Zeroed(size_t bytes) {
  PageMemory memory;
  if (bytes == 0) return memory;
  if (bytes < kFromKernelBytes) {
    memory.size_ = (bytes + 63) & ~size_t{63};
    memory.data_ = std::aligned_alloc(64, memory.size_);
    DT_CHECK_MSG(memory.data_ != nullptr, "out of memory for {} bytes of rows", bytes);
    std::memset(memory.data_, 0, memory.size_);
    return memory;
  }
  memory.size_ = bytes;
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  DT_CHECK_MSG(mapped != MAP_FAILED, "out of memory for {} bytes of rows", bytes);
  memory.data_ = mapped;
  if (bytes >= kHugePage) madvise(mapped, bytes, MADV_HUGEPAGE);  // A hint: may fail.
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

}  // namespace dt::server
