#include "worker/data/cache_file.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <errno.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <vector>

#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/storage/files.h"

namespace dt::worker {
namespace {

constexpr uint64_t kHeaderBytes = 4096;
constexpr char kMagic[8] = {'d', 't', 'c', 'a', 'c', 'h', 'e', '\n'};
constexpr uint64_t kVersion = 3;  // Raise it when the meaning of any byte changes.

struct Header {
  char magic[8];
  uint64_t version;
  uint64_t meta_offset;
  uint64_t meta_bytes;
  uint64_t meta_hash;
  uint64_t header_hash;  // Hash of the fields above.
};

uint64_t HashOf(const Header& header) {
  return HashBytes(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, header_hash)));
}

std::vector<uint64_t> HashChunks(const std::byte* body, uint64_t bytes, TaskPool& pool) {
  std::vector<uint64_t> hashes((bytes + kCacheChunkBytes - 1) / kCacheChunkBytes);
  pool.ParallelFor(hashes.size(), 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const uint64_t at = i * kCacheChunkBytes;
      hashes[i] = HashBytes({body + at, std::min(kCacheChunkBytes, bytes - at)});
    }
  });
  return hashes;
}

}  // namespace

Result<std::unique_ptr<CacheWriter>> CacheWriter::Create(std::string path) {
  const std::string dir = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  std::filesystem::create_directories(dir.empty() ? "." : dir, error);
  Result<OpenFile> file = OpenDraft(path, Readers::kAll);
  if (!file.ok()) {
    return WithHint(Unavailable("the data cache cannot be made: {}", MessageOf(file.status())),
                    "set data.cache_dir to a directory that can be written");
  }
  std::string heap_path = path + ".heap.XXXXXX";
  const int heap_file = mkostemp(heap_path.data(), O_CLOEXEC);
  if (heap_file < 0) {
    const Status status = DiskError("writing", heap_path, errno);
    unlink(path.c_str());
    return status;
  }
  unlink(heap_path.c_str());
  return std::make_unique<CacheWriter>(*std::move(file), OpenFile(heap_file), std::move(path));
}

CacheWriter::~CacheWriter() {
  if (!finished_) unlink(path_.c_str());
}

Status CacheWriter::Write(const OpenFile& file, const void* bytes, uint64_t size, uint64_t at) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t put = pwrite(file.descriptor(), from, size, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return WriteFailed(put < 0 ? errno : ENOSPC);
    from += put;
    at += static_cast<uint64_t>(put);
    size -= static_cast<uint64_t>(put);
  }
  return OkStatus();
}

Status CacheWriter::WriteFailed(int error) const {
  const std::string dir = std::filesystem::path(path_).parent_path().string();
  struct statvfs disk {};
  const bool known = statvfs(dir.empty() ? "." : dir.c_str(), &disk) == 0;
  const uint64_t free_bytes = known ? disk.f_bavail * disk.f_frsize : 0;
  std::string text =
      fmt::format("{}: writing the data cache failed after {}: {}; {} are free in {}", path_,
                  BytesText(bytes_written()), std::strerror(error), BytesText(free_bytes), dir);
  if (bytes_expected_ > 0) {
    text += fmt::format(", about {} are needed", BytesText(bytes_expected_));
  }
  return WithHint(Unavailable("{}", text),
                  "free some space, or set data.cache_dir to a larger disk");
}

Status CacheWriter::Append(std::span<const std::byte> records, std::span<const uint64_t> heap) {
  DT_TRY_STATUS(Write(file_, records.data(), records.size(), kHeaderBytes + records_bytes_));
  records_bytes_ += records.size();
  DT_TRY_STATUS(Write(heap_file_, heap.data(), heap.size_bytes(), heap_bytes_));
  heap_bytes_ += heap.size_bytes();
  return OkStatus();
}

Status CacheWriter::AppendHeap() {
  std::vector<char> buffer(1 << 20);
  for (uint64_t at = 0; at < heap_bytes_;) {
    const ssize_t got =
        pread(heap_file_.descriptor(), buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return WriteFailed(got < 0 ? errno : EIO);
    DT_TRY_STATUS(Write(file_, buffer.data(), static_cast<uint64_t>(got),
                        kHeaderBytes + records_bytes_ + at));
    at += static_cast<uint64_t>(got);
  }
  return OkStatus();
}

Status CacheWriter::Finish(CacheMeta meta, TaskPool& pool) {
  DT_TRY_STATUS(AppendHeap());
  const uint64_t body = records_bytes_ + heap_bytes_;
  if (body > 0) {
    void* const map =
        mmap(nullptr, kHeaderBytes + body, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
    if (map == MAP_FAILED) return WriteFailed(errno);
    const auto* const bytes = static_cast<const std::byte*>(map);
    meta.chunk_hashes = HashChunks(bytes + kHeaderBytes, body, pool);
    munmap(map, kHeaderBytes + body);
  }
  meta.heap_words = heap_bytes_ / sizeof(uint64_t);
  meta.fingerprint = FingerprintOf(meta);
  const std::string description = EncodeMeta(meta);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.meta_offset = kHeaderBytes + body;
  header.meta_bytes = description.size();
  header.meta_hash = HashString(description);
  header.header_hash = HashOf(header);
  DT_TRY_STATUS(Write(file_, description.data(), description.size(), header.meta_offset));
  DT_TRY_STATUS(Write(file_, &header, sizeof header, 0));
  finished_ = true;
  return OkStatus();
}

namespace {

// Returns the description if header and sizes of a mapped file are sound.
Result<CacheMeta> ReadMeta(std::span<const std::byte> file) {
  const std::byte* const bytes = file.data();
  const uint64_t size = file.size();
  Header header;
  if (size < kHeaderBytes) return DataLoss("it is only {} bytes long", size);
  std::memcpy(&header, bytes, sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    return DataLoss("it does not start as a data cache");
  }
  if (header.version != kVersion) {
    return DataLoss("it has version {}, this program reads version {}", header.version, kVersion);
  }
  if (header.header_hash != HashOf(header)) return DataLoss("its header is damaged");
  if (header.meta_offset > size || header.meta_bytes != size - header.meta_offset ||
      header.meta_offset < kHeaderBytes) {
    return DataLoss("it is {} bytes long, {} expected", size,
                    header.meta_offset + header.meta_bytes);
  }
  const std::string_view description(reinterpret_cast<const char*>(bytes) + header.meta_offset,
                                     header.meta_bytes);
  if (HashString(description) != header.meta_hash) return DataLoss("its description is damaged");
  DT_TRY(CacheMeta meta, DecodeMeta(description));
  const RowLayout layout(meta.columns);
  const uint64_t body = header.meta_offset - kHeaderBytes;
  const uint64_t record = std::max<uint64_t>(1, layout.record_bytes());
  if (meta.rows > body / record || meta.heap_words > body / 8 ||
      meta.rows * layout.record_bytes() + meta.heap_words * 8 != body) {
    return DataLoss("its size does not fit its {} rows", meta.rows);
  }
  return meta;
}

}  // namespace

Result<std::unique_ptr<CacheFile>> CacheFile::Open(const std::string& path, TaskPool& pool) {
  DT_TRY(auto file, MappedFile::Open(path));
  if (file->bytes().empty()) return DataLoss("{}: it is empty", path);
  Result<CacheMeta> meta = ReadMeta(file->bytes());
  if (!meta.ok()) return Prefixed(meta.status(), path);
  auto cache = std::make_unique<CacheFile>(std::move(file), *std::move(meta));
  if (Status sound = cache->CheckContent(pool); !sound.ok()) return Prefixed(sound, path);
  return cache;
}

const std::byte* CacheFile::records() const { return file_->bytes().data() + kHeaderBytes; }

const uint64_t* CacheFile::heap() const {
  return reinterpret_cast<const uint64_t*>(records() + meta_.rows * layout_.record_bytes());
}

Status CacheFile::CheckContent(TaskPool& pool) const {
  const uint64_t body = meta_.rows * layout_.record_bytes() + meta_.heap_words * 8;
  if (HashChunks(records(), body, pool) != meta_.chunk_hashes ||
      FingerprintOf(meta_) != meta_.fingerprint) {
    return DataLoss("its content is damaged");
  }
  return layout_.has_heap() ? CheckHeapPlaces(pool) : OkStatus();
}

// Gather trusts the positions in the heap, and a `format: binary` file may come from anywhere.
Status CacheFile::CheckHeapPlaces(TaskPool& pool) const {
  std::atomic<bool> sound = true;
  pool.ParallelFor(meta_.rows, 1 << 16, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const std::byte* const record = records() + row * layout_.record_bytes();
      uint64_t place;
      std::memcpy(&place, record + layout_.heap_slot(), sizeof place);
      uint64_t words = 0;
      for (size_t c = 0; c < layout_.columns().size(); ++c) {
        if (!layout_.columns()[c].is_ragged()) continue;
        uint32_t count;
        std::memcpy(&count, record + layout_.slot(c).value, sizeof count);
        words += RowLayout::HeapWords(layout_.columns()[c], count);
      }
      if (place > meta_.heap_words || words > meta_.heap_words - place) sound = false;
    }
  });
  return sound ? OkStatus() : DataLoss("its rows point outside of it");
}

}  // namespace dt::worker
