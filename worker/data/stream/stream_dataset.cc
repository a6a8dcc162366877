#include "worker/data/stream/stream_dataset.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "worker/data/format/cell_values.h"
#include "worker/data/format/delimited.h"
#include "worker/data/rows_view.h"
#include "worker/data/striped_dataset.h"

namespace dt::worker {
namespace {

// The cells of a message are what the listed columns are read from, in this order.
std::unique_ptr<LineDecoder> DecoderOf(const DataConfig& config) {
  std::vector<std::string> names;
  const auto cell_of = [&](const std::string& name) {
    const auto at = std::ranges::find(names, name) - names.begin();
    if (static_cast<size_t>(at) == names.size()) names.push_back(name);
    return static_cast<size_t>(at);
  };
  DelimitedOptions options{.delimiter = config.delimiter};
  for (const ColumnSpec& column : config.columns) {
    options.cell_of_column.push_back(column.is_crossed() ? kNoCell
                                                         : cell_of(column.name_in_file()));
    options.weights_of_column.push_back(column.weights.empty() ? kNoCell : cell_of(column.weights));
  }
  options.cells = names.size();
  return MakeDelimitedDecoder(config.columns, std::move(options));
}

}  // namespace

// Fetches and parses messages. Used by one thread at a time.
class StreamDataset::Source {
 public:
  Source(const DataConfig& config, std::unique_ptr<MessageReader> reader)
      : config_(config), decoder_(DecoderOf(config)), reader_(std::move(reader)) {}

  MessageReader& reader() { return *reader_; }
  // Adds the times at which the messages were written.
  Status Gather(std::span<const uint64_t> rows, Batch& batch, std::vector<double>& written);

 private:
  Status Parse(uint32_t partition, uint64_t offset, std::string_view text);
  Status Refuse(uint32_t partition, uint64_t offset, std::string_view error);

  const DataConfig& config_;
  const std::unique_ptr<LineDecoder> decoder_;
  const std::unique_ptr<MessageReader> reader_;
  Block block_;
  RowScratch scratch_;
  uint64_t skipped_ = 0;
};

Status StreamDataset::Source::Parse(uint32_t partition, uint64_t offset, std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.find('\n') != text.npos) {
    return Refuse(partition, offset, "several lines found, one expected");
  }
  std::string error;
  block_.Start();
  if (decoder_->Parse(text, scratch_, block_, error) == LineResult::kRow) {
    block_.Keep();
    return OkStatus();
  }
  block_.Drop();
  return Refuse(partition, offset, error);
}

Status StreamDataset::Source::Refuse(uint32_t partition, uint64_t offset, std::string_view error) {
  Status bad = Malformed("{}, partition {}, offset {}: {}", config_.stream->Name(), partition,
                         offset, error);
  if (config_.on_error == OnError::kStop) {
    return WithHint(std::move(bad), "write correct messages, or set data.on_error to skip");
  }
  // After 1, 2, 4, … of them, so that a topic full of them does not fill the log.
  ++skipped_;
  if (std::has_single_bit(skipped_)) {
    LogWarn("data.messages_skipped", {{"count", skipped_}, {"last", MessageOf(bad)}});
  }
  return OkStatus();
}

Status StreamDataset::Source::Gather(std::span<const uint64_t> rows, Batch& batch,
                                     std::vector<double>& written) {
  block_.Clear(decoder_->layout(), rows.size());
  for (size_t i = 0, next = 0; i < rows.size(); i = next) {
    for (next = i + 1; next < rows.size() && rows[next] == rows[next - 1] + 1;) ++next;
    const uint32_t partition = StripeOf(rows[i]);
    const uint64_t first = RowInStripe(rows[i]);
    DT_TRY_STATUS(reader_->Read(partition, {first, first + (next - i)},
                                [&](const MessageReader::Message& message) {
                                  if (message.written > 0) written.push_back(message.written);
                                  return Parse(partition, message.offset, message.text);
                                }));
  }
  std::vector<uint64_t> found(block_.rows());
  std::iota(found.begin(), found.end(), uint64_t{0});
  ClearColumns(found.size(), decoder_->layout().columns(), batch);
  RowsView(decoder_->layout(), block_.records().data(), block_.heap().data(), block_.rows())
      .Gather(found, batch);
  return OkStatus();
}

StreamDataset::StreamDataset(const DataConfig& config, std::unique_ptr<Source> source)
    : columns_(config.columns),
      fingerprint_(HashString(config.stream->Name())),
      source_(std::move(source)) {}

StreamDataset::~StreamDataset() = default;

Result<std::unique_ptr<StreamDataset>> StreamDataset::Open(const DataConfig& config,
                                                           std::unique_ptr<MessageReader> reader) {
  DT_TRY_STATUS(CheckListedColumns(config.columns));
  return std::make_unique<StreamDataset>(config,
                                         std::make_unique<Source>(config, std::move(reader)));
}

Result<std::vector<PartitionRange>> StreamDataset::Partitions() const {
  MutexLock lock(mutex_);
  DT_TRY(const uint32_t count, source_->reader().Partitions());
  std::vector<PartitionRange> partitions;
  for (uint32_t p = 0; p < count; ++p) {
    DT_TRY(const OffsetRange range, source_->reader().Range(p));
    partitions.push_back({range.first, range.end});
  }
  return partitions;
}

void StreamDataset::OnApplied(Step before) const {
  MutexLock lock(delays_mutex_);
  delays_.OnApplied(before, WallSeconds());
}

void StreamDataset::ForgetGathered() const {
  MutexLock lock(delays_mutex_);
  delays_.Forget();
}

StreamDelays StreamDataset::delays() const {
  MutexLock lock(delays_mutex_);
  return delays_;
}

Status StreamDataset::Gather(std::span<const uint64_t> rows, Batch& batch) const {
  DT_CHECK(!batch.part.has_value());
  std::vector<double> written;
  written.reserve(rows.size());
  {
    MutexLock lock(mutex_);
    DT_TRY_STATUS(source_->Gather(rows, batch, written));
  }
  MutexLock lock(delays_mutex_);
  delays_.OnFetched(batch.step, std::move(written));
  return OkStatus();
}

}  // namespace dt::worker
