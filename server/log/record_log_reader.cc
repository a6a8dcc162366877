#include "server/log/record_log_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/check.h"
#include "common/base/folder.h"
#include "server/log/record_log_format.h"

namespace dt::server {
namespace {

std::string PrefixOf(uint32_t executor) { return fmt::format("log-{}-", executor); }

// The numbers of an executor's segments, ascending.
std::vector<uint64_t> SegmentsIn(const std::string& dir, uint32_t executor) {
  std::vector<uint64_t> found;
  const std::string prefix = PrefixOf(executor);
  for (const std::filesystem::path& path : ListFolderIfAny(dir)) {
    const std::string name = path.filename().string();
    if (!name.starts_with(prefix)) continue;
    uint64_t number = 0;
    const char* const end = name.data() + name.size();
    const auto [stop, bad] = std::from_chars(name.data() + prefix.size(), end, number);
    if (bad == std::errc() && stop == end) found.push_back(number);
  }
  std::ranges::sort(found);
  return found;
}

template <class T>
std::span<std::byte> BytesOf(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

}  // namespace

RecordLogReader::RecordLogReader(RecordLogReader&& other) noexcept
    : options_(other.options_),
      segments_(std::move(other.segments_)),
      at_(other.at_),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      offset_(other.offset_),
      began_(other.began_),
      number_(other.number_),
      bytes_total_(other.bytes_total_),
      ended_(other.ended_),
      end_(std::move(other.end_)) {}

RecordLogReader::~RecordLogReader() {
  if (fd_ >= 0) close(fd_);
}

Result<RecordLogReader> RecordLogReader::Open(Options options) {
  RecordLogReader reader(std::move(options));
  const Options& o = reader.options_;
  reader.segments_ = SegmentsIn(o.dir, o.executor);
  std::erase_if(reader.segments_, [&](uint64_t s) { return s < o.first_segment; });
  reader.end_.next_segment = o.first_segment;
  for (size_t i = 0; i < reader.segments_.size(); ++i) {
    const std::string path = record_log::SegmentPath(o.dir, o.executor, o.first_segment + i);
    if (reader.segments_[i] != o.first_segment + i) return DataLoss("the log {} is missing", path);
    std::error_code error;
    const uint64_t bytes = std::filesystem::file_size(path, error);
    if (!error) reader.bytes_total_ += bytes;
  }
  if (reader.segments_.empty()) {
    return DataLoss("the log {} is missing",
                    record_log::SegmentPath(o.dir, o.executor, o.first_segment));
  }
  return reader;
}

std::string RecordLogReader::Where() const {
  const uint64_t segment = segments_[std::min(at_, segments_.size() - 1)];
  return fmt::format("{}, byte {}",
                     record_log::SegmentPath(options_.dir, options_.executor, segment), began_);
}

Status RecordLogReader::Damage(std::string_view what) const {
  return WithHint(DataLoss("the log is damaged at {}: {}", Where(), what),
                  "what was pushed since the last checkpoint cannot be read back");
}

Status RecordLogReader::ReadAt(uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t n = pread(fd_, to.data(), to.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return Unavailable("reading {}: {}", Where(), n < 0 ? std::strerror(errno) : "it ends early");
    }
    offset += static_cast<uint64_t>(n);
    to = to.subspan(static_cast<size_t>(n));
  }
  return OkStatus();
}

Status RecordLogReader::OpenSegment(uint64_t segment) {
  const std::string path = record_log::SegmentPath(options_.dir, options_.executor, segment);
  fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd_ < 0) return Unavailable("reading {}: {}", path, std::strerror(errno));
  struct stat status {};
  if (fstat(fd_, &status) != 0) return Unavailable("reading {}: {}", path, std::strerror(errno));
  size_ = static_cast<uint64_t>(status.st_size);
  offset_ = began_ = 0;
  record_log::SegmentHead head;
  if (size_ < sizeof(head)) return Bad(true, "the file has no head").status();
  DT_TRY_STATUS(ReadAt(0, BytesOf(head)));
  if (head.digest != record_log::DigestOfHead(head) || head.magic != record_log::kMagic) {
    return Bad(false, "the file's head is not as it was written").status();
  }
  if (head.version != record_log::kVersion) {
    return Damage(fmt::format("it is of version {}", head.version));
  }
  if (head.executor != options_.executor || head.segment != segment) {
    return Damage("the file has another one's head");
  }
  // A later generation: a return to a checkpoint that was not completed, so nobody pushed to it.
  if (head.generation > options_.generation.value()) {
    ended_ = true;
    return OkStatus();
  }
  if (head.generation < options_.generation.value()) {
    return Damage(fmt::format("it is of generation {} of the job", head.generation));
  }
  if (number_.has_value() && *number_ != head.first_record) {
    return Damage(fmt::format("it begins with record {}, the one before ended with {}",
                              head.first_record, *number_ - 1));
  }
  number_ = head.first_record;
  offset_ = sizeof(head);
  return OkStatus();
}

void RecordLogReader::CloseSegment() {
  close(fd_);
  fd_ = -1;
  end_.segments.push_back({segments_[at_], offset_});
  end_.bytes += std::exchange(offset_, 0);
  ++at_;
}

Result<std::optional<RecordLogReader::Record>> RecordLogReader::Next() {
  while (!ended_ && at_ < segments_.size()) {
    if (fd_ < 0) DT_TRY_STATUS(OpenSegment(segments_[at_]));
    if (ended_) break;
    if (offset_ < size_) {
      DT_TRY(std::optional<Record> record, ReadRecord());
      if (record.has_value()) return record;
      break;  // The record is incomplete.
    }
    CloseSegment();
  }
  ended_ = true;
  return std::optional<Record>();
}

Result<std::optional<RecordLogReader::Record>> RecordLogReader::Bad(bool cut_short,
                                                                    std::string_view what) {
  const bool last = at_ + 1 == segments_.size();
  uint64_t tail = 0;
  if (!cut_short && size_ >= sizeof(tail))
    DT_TRY_STATUS(ReadAt(size_ - sizeof(tail), BytesOf(tail)));
  const bool torn = cut_short || tail == 0;
  if (!last || !torn) return Damage(torn ? "the file ends within a record" : what);
  end_.torn_bytes = size_ - offset_;
  ended_ = true;
  return std::optional<Record>();
}

Result<std::optional<RecordLogReader::Record>> RecordLogReader::ReadRecord() {
  began_ = offset_;
  record_log::RecordHead head;
  if (size_ - offset_ < sizeof(head)) return Bad(true, "");
  DT_TRY_STATUS(ReadAt(offset_, BytesOf(head)));
  if (head.digest != record_log::DigestOfHead(head)) {
    return Bad(false, "the record's head is not as it was written");
  }
  uint64_t at = offset_ + sizeof(head);
  Record record;
  Frame* const parts[record_log::kParts] = {&record.head, &record.keys, &record.gradients};
  for (size_t i = 0; i < record_log::kParts; ++i) {
    if (head.bytes[i] > kMessageBytesMax) return Damage("the record has a part of more than 1 GiB");
    if (size_ - at < head.bytes[i]) return Bad(true, "");
    *parts[i] = Frame::Of(head.bytes[i]);
    DT_TRY_STATUS(ReadAt(at, parts[i]->bytes()));
    if (HashBytes(std::as_const(*parts[i]).bytes()) != head.digests[i]) {
      return Bad(false, "the record's content is not as it was written");
    }
    at += head.bytes[i];
  }
  uint64_t end_mark = 0;
  if (size_ - at < sizeof(end_mark)) return Bad(true, "");
  DT_TRY_STATUS(ReadAt(at, BytesOf(end_mark)));
  if (end_mark != record_log::EndMarkOf(head.number)) {
    return Bad(false, "the record's end is not as it was written");
  }
  if (head.number != *number_) {
    return Damage(fmt::format("it is record {} where {} belongs", head.number, *number_));
  }
  number_ = head.number + 1;
  ++end_.records;
  offset_ = at + sizeof(end_mark);
  return std::optional(std::move(record));
}

Result<RecordLogReader::End> RecordLogReader::Finish() {
  DT_CHECK(ended_);
  const std::string& dir = options_.dir;
  if (fd_ >= 0 && offset_ > 0) {
    const bool torn = end_.torn_bytes > 0;
    const bool cut = !torn || (ftruncate(fd_, static_cast<off_t>(offset_)) == 0 &&
                               (!options_.sync || fsync(fd_) == 0));
    if (!cut) {
      return Unavailable("cutting off the torn end of {}: {}", Where(), std::strerror(errno));
    }
    CloseSegment();
  }
  // Segments without a good head, or of a generation that was not completed.
  for (; at_ < segments_.size(); ++at_) {
    const std::string path = record_log::SegmentPath(dir, options_.executor, segments_[at_]);
    if (unlink(path.c_str()) != 0) {
      return Unavailable("removing {}: {}", path, std::strerror(errno));
    }
  }
  if (!end_.segments.empty()) end_.next_segment = end_.segments.back().number + 1;
  end_.next_record = number_.value_or(1);
  return std::move(end_);
}

void RemoveSegments(const std::string& dir, uint32_t executor, uint64_t first) {
  for (const uint64_t segment : SegmentsIn(dir, executor)) {
    if (segment < first) unlink(record_log::SegmentPath(dir, executor, segment).c_str());
  }
}

void RemoveAllSegments(const std::string& dir) {
  for (const std::filesystem::path& path : ListFolderIfAny(dir)) {
    if (path.filename().string().starts_with("log-")) unlink(path.c_str());
  }
}

}  // namespace dt::server
