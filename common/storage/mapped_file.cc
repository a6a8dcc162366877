#include "common/storage/mapped_file.h"

#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/storage/files.h"

namespace dt {
namespace {

// The mappings that the signal handler knows; it may neither allocate nor lock. If all slots are
// taken, the signal ends the process without the sentence.
struct Mappings {
  std::atomic<const MappedFile*> slots[256];
  struct sigaction before {};
};
constinit Mappings mappings;

void EndWithLastWords(int, siginfo_t* info, void*) {
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  for (const auto& slot : mappings.slots) {
    const MappedFile* const file = slot.load();
    if (file == nullptr) continue;
    const std::span<const std::byte> bytes = file->bytes();
    const std::less<> before;
    if (before(at, bytes.data()) || !before(at, bytes.data() + bytes.size())) continue;
    const std::string& words = file->last_words();
    if (write(STDERR_FILENO, words.data(), words.size()) >= 0) _exit(1);
    _exit(1);
  }
  sigaction(SIGBUS, &mappings.before, nullptr);  // Not ours: the fault repeats.
}

void HandleBusErrors() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = EndWithLastWords;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &mappings.before);
  });
}

// Replaces `from` by `to` in one slot.
void Exchange(const MappedFile* from, const MappedFile* to) {
  for (auto& slot : mappings.slots) {
    const MappedFile* expected = from;
    if (slot.compare_exchange_strong(expected, to)) return;
  }
}

}  // namespace

Result<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  DT_TRY(const OpenFile file, OpenForReading(path));
  struct stat info {};
  if (fstat(file.descriptor(), &info) != 0) return DiskError("reading", path, errno);
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::make_unique<MappedFile>(std::span<const std::byte>(), path);
  void* const map = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor(), 0);
  if (map == MAP_FAILED) return DiskError("mapping", path, errno);
  return std::make_unique<MappedFile>(std::span(static_cast<const std::byte*>(map), size), path);
}

MappedFile::MappedFile(std::span<const std::byte> bytes, const std::string& path)
    : bytes_(bytes),
      last_words_(Printable(
          fmt::format("dovetail: {} was cut while it was in use, or its disk failed\n", path))) {
  HandleBusErrors();
  Exchange(nullptr, this);
}

MappedFile::~MappedFile() {
  Exchange(this, nullptr);
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace dt
