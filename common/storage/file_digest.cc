#include "common/storage/file_digest.h"

#include <cerrno>
#include <memory>
#include <unistd.h>
#include <vector>

#include "common/base/hash.h"
#include "common/storage/files.h"

namespace dt {
namespace {

constexpr size_t kPiece = 1 << 20;

struct StateDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

Result<FileDigest> DigestOf(const std::string& path) {
  DT_TRY(const OpenFile file, OpenForReading(path));
  const std::unique_ptr<XXH3_state_t, StateDeleter> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  std::vector<char> piece(kPiece);
  FileDigest out;
  for (;;) {
    const ssize_t got = read(file.descriptor(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return DiskError("reading", path, errno);
    if (got == 0) break;
    XXH3_64bits_update(state.get(), piece.data(), static_cast<size_t>(got));
    out.bytes += static_cast<uint64_t>(got);
  }
  out.digest = XXH3_64bits_digest(state.get());
  return out;
}

}  // namespace dt
