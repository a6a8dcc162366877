#include "server/log/record_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dt::server {
namespace {

constexpr size_t kPiecesMax = 1024;  // Limit of one pwritev: IOV_MAX.

iovec PieceOf(const void* data, size_t bytes) { return {const_cast<void*>(data), bytes}; }

// Writes everything and returns 0, or returns errno.
int WriteAllAt(int fd, std::vector<iovec> pieces, uint64_t offset) {
  size_t first = 0;
  while (first < pieces.size()) {
    if (pieces[first].iov_len == 0) {
      ++first;
      continue;
    }
    const auto count = static_cast<int>(std::min(kPiecesMax, pieces.size() - first));
    const ssize_t n = pwritev(fd, pieces.data() + first, count, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    offset += static_cast<uint64_t>(n);
    for (auto left = static_cast<size_t>(n); left > 0;) {
      const size_t taken = std::min(left, pieces[first].iov_len);
      pieces[first].iov_base = static_cast<char*>(pieces[first].iov_base) + taken;
      pieces[first].iov_len -= taken;
      left -= taken;
      if (pieces[first].iov_len == 0) ++first;
    }
  }
  return 0;
}

std::array<std::span<const std::byte>, record_log::kParts> PartsOf(const RecordBytes& record) {
  return {std::as_bytes(std::span(record.head)), record.keys, record.gradients};
}

int SyncFolder(const std::string& dir) {
  const int fd = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error;
}

}  // namespace

Result<std::unique_ptr<RecordLog>> RecordLog::Open(Options options, Generation generation,
                                                   uint64_t segment, uint64_t first_record,
                                                   std::vector<LogSegment> older) {
  auto log = std::make_unique<RecordLog>(Key(), std::move(options));
  log->generation_ = generation;
  log->next_record_ = first_record;
  log->written_ = first_record - 1;
  log->older_ = std::move(older);
  for (const LogSegment& s : log->older_) log->older_bytes_ += s.bytes;
  DT_TRY_STATUS(log->OpenSegment(segment));
  return log;
}

RecordLog::~RecordLog() {
  if (fd_ >= 0) close(fd_);
}

std::string RecordLog::path() const {
  return record_log::SegmentPath(options_.dir, options_.executor, segment_);
}

Status RecordLog::OpenSegment(uint64_t segment) {
  record_log::SegmentHead head;
  head.executor = options_.executor;
  head.generation = generation_.value();
  head.segment = segment;
  head.first_record = written_ + 1;
  head.digest = record_log::DigestOfHead(head);
  const std::string path = record_log::SegmentPath(options_.dir, options_.executor, segment);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int error = fd < 0 ? errno : WriteAllAt(fd, {PieceOf(&head, sizeof(head))}, 0);
  if (error == 0 && options_.sync && fdatasync(fd) != 0) error = errno;
  if (error == 0 && options_.sync) error = SyncFolder(options_.dir);
  if (error != 0) {
    if (fd >= 0) close(fd);
    if (fd >= 0) unlink(path.c_str());
    return WithHint(Unavailable("the log {} cannot be made: {}", path, std::strerror(error)),
                    "see cluster.server.dir");
  }
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
  segment_ = segment;
  good_ = sizeof(head);
  return OkStatus();
}

void RecordLog::Append(RecordBytes record) {
  record_log::RecordHead head;
  head.number = next_record_++;
  const auto parts = PartsOf(record);
  for (size_t i = 0; i < parts.size(); ++i) {
    head.bytes[i] = parts[i].size();
    head.digests[i] = HashBytes(parts[i]);
  }
  head.digest = record_log::DigestOfHead(head);
  pending_.push_back({head, std::move(record), record_log::EndMarkOf(head.number)});
}

Status RecordLog::Commit() {
  if (pending_.empty()) return OkStatus();
  DT_TRY_STATUS(WritePending());
  // After an error, a later Commit tries again.
  if (good_ > options_.segment_bytes_max) BeginSegment().IgnoreError();
  return OkStatus();
}

Status RecordLog::WritePending() {
  std::vector<iovec> pieces;
  uint64_t bytes = 0;
  for (const Pending& record : pending_) {
    pieces.push_back(PieceOf(&record.head, sizeof(record.head)));
    for (const std::span<const std::byte> part : PartsOf(record.record)) {
      pieces.push_back(PieceOf(part.data(), part.size()));
    }
    pieces.push_back(PieceOf(&record.end_mark, sizeof(record.end_mark)));
  }
  for (const iovec& piece : pieces) {
    bytes += piece.iov_len;
  }
  if (broken_) return WriteError(EIO, bytes);
  if (const int error = WriteAllAt(fd_, std::move(pieces), good_); error != 0) {
    // Removes the part that was written: a reader must find neither a whole record nor half of one.
    if (ftruncate(fd_, static_cast<off_t>(good_)) != 0) broken_ = true;
    return WriteError(error, bytes);
  }
  if (options_.sync && fdatasync(fd_) != 0) {
    // The kernel may have dropped these pages, and a second fdatasync would still return success.
    broken_ = true;
    return WriteError(errno, bytes);
  }
  good_ += bytes;
  written_ += pending_.size();
  pending_.clear();
  return OkStatus();
}

Status RecordLog::WriteError(int error, uint64_t bytes) {
  std::error_code unknown;
  const std::filesystem::space_info room = std::filesystem::space(options_.dir, unknown);
  const std::string free =
      unknown ? "" : fmt::format("; {} are free there", BytesText(room.available));
  return WithHint(Unavailable("the log {} cannot take {}: {}{}", path(), BytesText(bytes),
                              std::strerror(error), free),
                  error == EFBIG
                      ? "raise the limit on the size of files (ulimit -f)"
                      : "make room on that disk, or give cluster.server.dir another one");
}

Status RecordLog::BeginSegment() {
  const LogSegment closed{segment_, good_};
  DT_TRY_STATUS(OpenSegment(segment_ + 1));
  older_.push_back(closed);
  older_bytes_ += closed.bytes;
  return OkStatus();
}

Status RecordLog::BeginSegmentAtCut(Step step, uint64_t keep_from) {
  DT_TRY_STATUS(BeginSegment());
  cuts_.push_back({step, std::min(segment_, keep_from)});
  return OkStatus();
}

Status RecordLog::Restart(Generation generation) {
  const Generation before = std::exchange(generation_, generation);
  Status opened = OpenSegment(segment_ + 1);
  if (!opened.ok()) {
    generation_ = before;
    return opened;
  }
  pending_.clear();
  next_record_ = written_ + 1;
  older_.clear();
  older_bytes_ = 0;
  cuts_.clear();
  return OkStatus();
}

uint64_t RecordLog::Cut(Step step) {
  const auto cut = std::ranges::find(cuts_, step, &CutMark::step);
  if (cut == cuts_.end()) return first_segment();
  const auto keep = std::ranges::find_if(
      older_, [&](const LogSegment& segment) { return segment.number >= cut->first_segment; });
  for (auto s = older_.begin(); s != keep; ++s) older_bytes_ -= s->bytes;
  older_.erase(older_.begin(), keep);
  cuts_.erase(cuts_.begin(), cut + 1);
  return first_segment();
}

}  // namespace dt::server
