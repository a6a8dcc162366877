#include "common/storage/file_digest.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <vector>

#include "common/base/hash.h"

namespace dt {
namespace {

constexpr size_t kPiece = 1 << 20;

struct StateDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace

Result<FileDigest> DigestOf(const std::string& path) {
  const OpenFile file(path);
  if (file.fd() < 0) {
    if (errno == ENOENT) return NotFound("{}: no such file", path);
    return Unavailable("reading {}: {}", path, std::strerror(errno));
  }
  const std::unique_ptr<XXH3_state_t, StateDeleter> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  std::vector<char> piece(kPiece);
  FileDigest out;
  for (;;) {
    const ssize_t got = read(file.fd(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Unavailable("reading {}: {}", path, std::strerror(errno));
    if (got == 0) break;
    XXH3_64bits_update(state.get(), piece.data(), static_cast<size_t>(got));
    out.bytes += static_cast<uint64_t>(got);
  }
  out.digest = XXH3_64bits_digest(state.get());
  return out;
}

}  // namespace dt
