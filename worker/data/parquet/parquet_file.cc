#include "worker/data/parquet/parquet_file.h"

namespace dt::worker {

ParquetRows::ParquetRows(const ParquetFile& file, ArrowRows* rows)
    : file_(&file), rows_(rows, file.library_->close_rows) {}

Result<OwnedBatch> ParquetRows::Next() {
  const ArrowBatch* batch = nullptr;
  DT_TRY_STATUS(file_->StatusOf(file_->library_->next_batch(rows_.get(), &batch)));
  return OwnedBatch(batch, {file_->library_->free_batch});
}

ParquetFile::ParquetFile(ArrowLibrary library, std::shared_ptr<Input> input)
    : library_(library), input_(std::move(input)), parquet_(nullptr, library_->close_parquet) {}

Result<std::unique_ptr<ParquetFile>> ParquetFile::Open(std::shared_ptr<const RandomFile> file,
                                                       std::string name) {
  DT_TRY(const ArrowLibrary library, ArrowLibrary::Open("format: parquet"));
  using Shared = std::shared_ptr<Input>;
  const auto input = std::make_shared<Input>();
  input->file = std::move(file);
  input->name = std::move(name);
  auto opened = std::make_unique<ParquetFile>(ParquetFile(library, input));
  ArrowInput to_read;
  to_read.context = std::make_unique<Shared>(input).release();
  to_read.read = [](void* context, uint64_t at, uint64_t bytes, void* out) {
    return (*static_cast<Shared*>(context))->Read(at, bytes, out);
  };
  to_read.release = [](void* context) { std::unique_ptr<Shared>(static_cast<Shared*>(context)); };
  to_read.size = input->file->size();
  to_read.is_remote = input->file->is_remote();
  ArrowParquet* parquet = nullptr;
  const Status status = opened->StatusOf(library->open_parquet(to_read, &parquet));
  if (status.code() == StatusCode::kOutOfRange) {
    return WithHint(status, "a Parquet file that was cut short lacks its end, which describes it");
  }
  DT_TRY_STATUS(status);
  opened->parquet_.reset(parquet);
  return opened;
}

std::span<const ArrowField> ParquetFile::fields() const {
  size_t count = 0;
  const ArrowField* const fields = library_->fields(parquet_.get(), &count);
  return {fields, count};
}

ArrowSelection ParquetFile::Selection(GroupRange groups) const {
  return {.fields = selected_.data(),
          .field_count = selected_.size(),
          .first_group = groups.first,
          .group_count = groups.count};
}

uint64_t ParquetFile::DecodedBytes(GroupRange groups) const {
  return library_->decoded_bytes(parquet_.get(), Selection(groups));
}

Result<std::unique_ptr<ParquetRows>> ParquetFile::Read(GroupRange groups, uint64_t batch_rows,
                                                       bool is_large) const {
  ArrowSelection selection = Selection(groups);
  selection.batch_rows = batch_rows;
  selection.is_large = is_large;
  ArrowRows* rows = nullptr;
  DT_TRY_STATUS(StatusOf(library_->open_rows(parquet_.get(), selection, &rows)));
  return std::unique_ptr<ParquetRows>(std::make_unique<ParquetRows>(ParquetRows(*this, rows)));
}

Status ParquetFile::StatusOf(const ArrowError& error) const {
  if (error.code == ArrowCode::kOk) return OkStatus();
  MutexLock lock(input_->mutex);
  return input_->failed.ok() ? ToStatus(error, name()) : input_->failed;
}

bool ParquetFile::Input::Read(uint64_t at, uint64_t bytes, void* out) {
  const Result<size_t> got = file->ReadAt(at, {static_cast<char*>(out), bytes});
  if (got.ok() && *got == bytes) return true;
  MutexLock lock(mutex);
  if (!failed.ok()) return false;
  failed =
      !got.ok() ? got.status() : Unavailable("{}: the file became shorter while it was read", name);
  return false;
}

}  // namespace dt::worker
