#include "common/storage/rocksdb_sorted_file.h"

#include <filesystem>

#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>

#include "common/base/check.h"
#include "common/storage/rocksdb_status.h"

namespace dt {
namespace {

rocksdb::Options TableOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  table.block_size = 64 << 10;  // Read front to back.
  table.checksum = rocksdb::kXXH3;
  rocksdb::Options out;
  out.compression = rocksdb::kNoCompression;  // Floats do not shrink.
  out.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return out;
}

}  // namespace

struct SortedFileWriter::Impl {
  explicit Impl(std::string path_in, uint64_t bytes)
      : path(std::move(path_in)), bytes_expected(bytes), writer(rocksdb::EnvOptions(), options) {}

  const std::string path;
  const uint64_t bytes_expected;
  const rocksdb::Options options = TableOptions();
  rocksdb::SstFileWriter writer;
  bool finished = false;
};

SortedFileWriter::SortedFileWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SortedFileWriter::~SortedFileWriter() {
  if (impl_->finished) return;
  std::error_code ignored;
  std::filesystem::remove(impl_->path, ignored);
}

Result<std::unique_ptr<SortedFileWriter>> SortedFileWriter::Open(const std::string& path,
                                                                 uint64_t bytes_expected) {
  struct Opened : SortedFileWriter {
    explicit Opened(std::unique_ptr<Impl> in) : SortedFileWriter(std::move(in)) {}
  };
  auto impl = std::make_unique<Impl>(path, bytes_expected);
  const rocksdb::Status status = impl->writer.Open(path);
  DT_TRY_STATUS(FromRocks(status, "writing", path, bytes_expected));
  return std::make_unique<Opened>(std::move(impl));
}

Status SortedFileWriter::Add(std::string_view key, std::string_view value) {
  const rocksdb::Status status = impl_->writer.Put(ToSlice(key), ToSlice(value));
  DT_CHECK_MSG(!status.IsInvalidArgument(), "{}: {}", impl_->path, status.ToString());
  return FromRocks(status, "writing", impl_->path, impl_->bytes_expected);
}

Status SortedFileWriter::Finish() {
  DT_TRY_STATUS(FromRocks(impl_->writer.Finish(), "writing", impl_->path, impl_->bytes_expected));
  impl_->finished = true;
  return OkStatus();
}

struct SortedFileReader::Impl {
  explicit Impl(std::string path_in) : path(std::move(path_in)), reader(options) {}

  const std::string path;
  const rocksdb::Options options = TableOptions();
  rocksdb::SstFileReader reader;
  std::unique_ptr<rocksdb::Iterator> at;
};

SortedFileReader::SortedFileReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SortedFileReader::~SortedFileReader() = default;

Result<std::unique_ptr<SortedFileReader>> SortedFileReader::Open(const std::string& path) {
  struct Opened : SortedFileReader {
    explicit Opened(std::unique_ptr<Impl> in) : SortedFileReader(std::move(in)) {}
  };
  if (!std::filesystem::is_regular_file(path)) return NotFound("{}: no such file", path);
  auto impl = std::make_unique<Impl>(path);
  const rocksdb::Status status = impl->reader.Open(path);
  // A file too short to be a table is as damaged as one with a wrong checksum.
  if (status.IsInvalidArgument() || status.IsNotSupported()) {
    return DataLoss("reading {}: the data is damaged: {}", path, status.ToString());
  }
  DT_TRY_STATUS(FromRocks(status, "reading", path));
  rocksdb::ReadOptions options;
  options.readahead_size = 2 << 20;
  impl->at.reset(impl->reader.NewIterator(options));
  return std::make_unique<Opened>(std::move(impl));
}

Status SortedFileReader::Seek(std::string_view key) {
  impl_->at->Seek(ToSlice(key));
  return FromRocks(impl_->at->status(), "reading", impl_->path);
}

Status SortedFileReader::Next() {
  DT_CHECK(impl_->at->Valid());
  impl_->at->Next();
  return FromRocks(impl_->at->status(), "reading", impl_->path);
}

bool SortedFileReader::valid() const { return impl_->at->Valid(); }
std::string_view SortedFileReader::key() const { return FromSlice(impl_->at->key()); }
std::string_view SortedFileReader::value() const { return FromSlice(impl_->at->value()); }

}  // namespace dt
