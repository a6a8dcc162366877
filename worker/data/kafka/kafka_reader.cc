#include "worker/data/kafka/kafka_reader.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/log.h"

namespace dt::worker {
namespace {

constexpr int kCallMs = 200;  // Between two looks at `interrupted`.
constexpr size_t kMessagesAtOnce = 4096;
constexpr Duration kSilent = seconds(3);  // Brokers that are away for longer are logged.

}  // namespace

Result<std::unique_ptr<MessageReader>> KafkaReader::Open(Options options) {
  DT_TRY(KafkaLibrary library, KafkaLibrary::Open(options.library));
  std::vector<KafkaSetting> settings;
  for (const auto& [name, value] : options.settings) {
    settings.push_back({name.c_str(), value.c_str()});
  }
  KafkaTopic* topic = nullptr;
  DT_TRY_STATUS(ToStatus(library->open(options.brokers.c_str(), options.topic.c_str(),
                                       settings.data(), settings.size(), &topic),
                         "data.kafka"));
  std::unique_ptr<KafkaReader> reader(
      std::make_unique<KafkaReader>(KafkaReader(std::move(options), std::move(library))));
  reader->topic_ = {topic, reader->library_->close};
  return reader;
}

std::string KafkaReader::Name(uint32_t partition) const {
  return fmt::format("topic {}, partition {}", options_.topic, partition);
}

Status KafkaReader::Retry(std::string_view what,
                          const std::function<KafkaError(int timeout_ms)>& call) {
  const TimePoint begun = options_.clock->Now();
  for (bool told = false;;) {
    Status status = ToStatus(call(kCallMs), what);
    if (status.code() != StatusCode::kUnavailable) return status;
    DT_TRY_STATUS(options_.interrupted());
    const Duration waited = options_.clock->Now() - begun;
    if (waited > options_.patience) {
      return WithHint(
          Prefixed(status, fmt::format("no answer from the brokers {} for {:.0f} s",
                                       options_.brokers, SecondsBetween(begun, begun + waited))),
          "see whether they run, and data.kafka.brokers");
    }
    if (waited > kSilent && !std::exchange(told, true)) {
      LogWarn("kafka.waits", {{"brokers", options_.brokers}, {"why", MessageOf(status)}});
    }
  }
}

Result<uint32_t> KafkaReader::Partitions() {
  uint32_t count = 0;
  DT_TRY_STATUS(Retry(fmt::format("topic {}", options_.topic), [&](int timeout_ms) {
    return library_->partitions(topic_.get(), timeout_ms, &count);
  }));
  return count;
}

Result<OffsetRange> KafkaReader::Range(uint32_t partition) {
  OffsetRange range;
  DT_TRY_STATUS(Retry(Name(partition), [&](int timeout_ms) {
    return library_->range(topic_.get(), partition, timeout_ms, &range.first, &range.end);
  }));
  return range;
}

Result<uint64_t> KafkaReader::End(uint32_t partition, uint64_t) {
  DT_TRY(const OffsetRange range, Range(partition));
  return range.end;
}

Status KafkaReader::Read(uint32_t number, OffsetRange offsets, const Take& take) {
  if (offsets.size() == 0) return OkStatus();
  if (number >= partitions_.size()) partitions_.resize(number + 1);
  Partition& partition = partitions_[number];
  if (std::exchange(partition.at, std::nullopt) != offsets.first) {
    partition = {.at = {}, .received = offsets.first, .ahead = {}};
    DT_TRY_STATUS(Retry(Name(number),
                        [&](int) { return library_->seek(topic_.get(), number, offsets.first); }));
  }
  DT_TRY_STATUS(Receive(number, offsets, take));
  partition.at = offsets.end;
  return OkStatus();
}

Status KafkaReader::Receive(uint32_t number, OffsetRange offsets, const Take& take) {
  Partition& partition = partitions_[number];
  for (;;) {
    auto each = partition.ahead.begin();
    for (; each != partition.ahead.end() && each->offset < offsets.end; ++each) {
      DT_TRY_STATUS(take(*each));
    }
    partition.ahead.erase(partition.ahead.begin(), each);
    if (!partition.ahead.empty() || partition.received >= offsets.end) return OkStatus();
    KafkaMessages got;
    DT_TRY_STATUS(Retry(Name(number), [&](int timeout_ms) {
      const KafkaError error =
          library_->next(topic_.get(), number, timeout_ms, kMessagesAtOnce, &got);
      const bool nothing = error.code == KafkaCode::kOk && got.count == 0 && got.end == 0;
      return nothing ? KafkaError{KafkaCode::kUnavailable, "no message arrives"} : error;
    }));
    for (const KafkaMessage& message : std::span(got.messages, got.count)) {
      partition.ahead.push_back({message.offset, static_cast<double>(message.time_ms) / 1000,
                                 std::string(message.bytes, message.size)});
      partition.received = message.offset + 1;
    }
    partition.received = std::max(partition.received, got.end);
    DT_TRY_STATUS(options_.interrupted());
  }
}

}  // namespace dt::worker
