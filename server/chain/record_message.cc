#include "server/chain/record_message.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

namespace dt::server {
namespace {

constexpr uint64_t kAlignment = 8;

uint64_t Padded(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::byte* Append(std::span<const std::byte> bytes, std::byte* to) {
  to = std::copy(bytes.begin(), bytes.end(), to);
  return std::fill_n(to, Padded(bytes.size()) - bytes.size(), std::byte{0});
}

// Takes the parts of records out of a frame that all of them share.
class Parts {
 public:
  explicit Parts(const Frame& frame) : owner_(std::make_shared<Frame>(frame)) {}

  Result<Frame> Next(uint64_t bytes) {
    if (Padded(bytes) > owner_->size() - at_) {
      return Malformed("a message of records: it has fewer bytes than its header says");
    }
    Frame part = Frame::Of(owner_->bytes().subspan(at_, bytes), owner_);
    at_ += Padded(bytes);
    return part;
  }
  bool at_end() const { return at_ == owner_->size(); }

 private:
  std::shared_ptr<Frame> owner_;
  uint64_t at_ = 0;
};

}  // namespace

void RecordMessageWriter::Add(MapVersion since, const RecordBytes& record) {
  records_.push_back({since, &record});
  bytes_ += record.head.size() + record.keys.size() + record.gradients.size();
}

RecordsRequest RecordMessageWriter::Take(FramePool& frames) {
  RecordsRequest message;
  uint64_t heads = 0, keys = 0, gradients = 0;
  for (const Item& item : records_) {
    const RecordBytes& record = *item.record;
    message.parts.push_back({item.since, static_cast<uint32_t>(record.head.size()),
                             static_cast<uint32_t>(record.keys.size()),
                             static_cast<uint32_t>(record.gradients.size())});
    heads += Padded(record.head.size());
    keys += Padded(record.keys.size());
    gradients += Padded(record.gradients.size());
  }
  message.heads = frames.Make(heads);
  message.keys = frames.Make(keys);
  message.gradients = frames.Make(gradients);
  std::byte* head = message.heads.bytes().data();
  std::byte* key = message.keys.bytes().data();
  std::byte* gradient = message.gradients.bytes().data();
  for (const Item& item : records_) {
    head = Append(std::as_bytes(std::span(item.record->head)), head);
    key = Append(item.record->keys, key);
    gradient = Append(item.record->gradients, gradient);
  }
  records_.clear();
  bytes_ = 0;
  return message;
}

Result<std::vector<LinkRecord>> RecordsIn(const RecordsRequest& message,
                                          std::span<const TableSpec> tables,
                                          uint32_t shards_of_job) {
  Parts heads(message.heads), keys(message.keys), gradients(message.gradients);
  std::vector<LinkRecord> records;
  for (const RecordPart& part : message.parts) {
    DT_TRY(const Frame head, heads.Next(part.head_bytes));
    DT_TRY(const Frame key, keys.Next(part.key_bytes));
    DT_TRY(const Frame gradient, gradients.Next(part.gradient_bytes));
    DT_TRY(ShardRecord record, DecodeRecord(head, key, gradient, tables, shards_of_job));
    records.push_back({std::move(record), part.since});
  }
  if (heads.at_end() && keys.at_end() && gradients.at_end()) return records;
  return Malformed("a message of records: it has more bytes than its header says");
}

}  // namespace dt::server
