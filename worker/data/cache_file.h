// The cache of a split on disk:
//
//   header (4096 bytes) | records [rows × record_bytes] | heap u64 [heap_words] | CacheMeta
//
// The header holds magic, version, and the offset, size and hash of CacheMeta; all is
// little-endian. A file is written under another name and renamed when it is complete, so a reader
// never sees half of one.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "common/base/status.h"
#include "common/runtime/task_pool.h"
#include "common/storage/files.h"
#include "common/storage/mapped_file.h"
#include "worker/data/cache_meta.h"
#include "worker/data/row_layout.h"

namespace dt::worker {

// Writes one cache file. Used by one thread at a time.
class CacheWriter {
 public:
  // Makes `path` and its directory, and replaces an existing file. The destructor removes the file
  // unless Finish has succeeded.
  static Result<std::unique_ptr<CacheWriter>> Create(std::string path);
  // Called by Create.
  CacheWriter(OpenFile file, OpenFile heap_file, std::string path)
      : file_(std::move(file)), heap_file_(std::move(heap_file)), path_(std::move(path)) {}
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  Status Append(std::span<const std::byte> records, std::span<const uint64_t> heap);
  // Hashes what was appended, in parallel, and writes the description: fills in heap_words,
  // chunk_hashes and fingerprint.
  Status Finish(CacheMeta meta, TaskPool& pool);

  uint64_t bytes_written() const { return records_bytes_ + heap_bytes_; }
  // The expected final size, for the error message of a full disk.
  void set_bytes_expected(uint64_t bytes) { bytes_expected_ = bytes; }

 private:
  Status Write(const OpenFile& file, const void* bytes, uint64_t size, uint64_t at);
  Status WriteFailed(int error) const;
  Status AppendHeap();

  const OpenFile file_;
  const OpenFile heap_file_;  // Unnamed; Finish appends its bytes to the records.
  const std::string path_;
  uint64_t records_bytes_ = 0;
  uint64_t heap_bytes_ = 0;
  uint64_t bytes_expected_ = 0;
  bool finished_ = false;
};

// A cache file in memory. Immutable: any thread.
class CacheFile {
 public:
  // Errors: NotFound, if there is no file; DataLoss with the reason, if it is damaged or of another
  // version. Every byte is checked, in parallel.
  static Result<std::unique_ptr<CacheFile>> Open(const std::string& path, TaskPool& pool);
  // Called by Open after it has checked header and description.
  CacheFile(std::unique_ptr<MappedFile> file, CacheMeta meta)
      : file_(std::move(file)), meta_(std::move(meta)), layout_(meta_.columns) {}

  const CacheMeta& meta() const { return meta_; }
  const RowLayout& layout() const { return layout_; }
  const std::byte* records() const;
  const uint64_t* heap() const;

 private:
  Status CheckContent(TaskPool& pool) const;
  Status CheckHeapPlaces(TaskPool& pool) const;

  const std::unique_ptr<MappedFile> file_;
  const CacheMeta meta_;
  const RowLayout layout_;
};

}  // namespace dt::worker
