#include "common/storage/copy_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include "common/storage/files.h"

namespace dt {
namespace {

std::error_code LastError() { return {errno, std::generic_category()}; }

std::error_code WriteAll(int file, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t n = write(file, bytes, count);
    if (n < 0 && errno != EINTR) return LastError();
    if (n <= 0) continue;
    bytes += n;
    count -= static_cast<size_t>(n);
  }
  return {};
}

}  // namespace

std::error_code CopyFile(const std::filesystem::path& from, const std::filesystem::path& to,
                         uint64_t bytes) {
  const OpenFile source(open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source.ok()) return LastError();
  const OpenFile target(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!target.ok()) return LastError();
  std::vector<char> buffer(size_t{1} << 18);
  while (bytes > 0) {
    const size_t wanted = std::min<uint64_t>(bytes, buffer.size());
    const ssize_t n = read(source.descriptor(), buffer.data(), wanted);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return LastError();
    if (n == 0) break;
    const auto count = static_cast<size_t>(n);
    if (const std::error_code error = WriteAll(target.descriptor(), buffer.data(), count)) {
      return error;
    }
    bytes -= count;
  }
  return {};
}

std::error_code LinkOrCopy(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::create_hard_link(from, to, error);
  return error ? CopyFile(from, to) : error;
}

}  // namespace dt
