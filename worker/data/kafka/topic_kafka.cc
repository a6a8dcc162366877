// The library around librdkafka; see kafka_table.h.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <librdkafka/rdkafka.h>

#include "common/base/mutex.h"
#include "worker/data/kafka/kafka_table.h"

namespace dt::worker {

struct KafkaTopic {
  rd_kafka_t* client = nullptr;
  rd_kafka_topic_t* topic = nullptr;
  std::string name;
  struct Partition {
    bool reads = false;  // librdkafka fetches it ahead.
    // Why it goes on no more, until the next seek; it is told after the messages before it.
    KafkaCode failed = KafkaCode::kOk;
    std::string why;
  };
  std::vector<Partition> partitions;
  std::vector<rd_kafka_message_t*> held;
  std::vector<KafkaMessage> messages;

  // The last line that librdkafka has logged, on a thread of its own.
  Mutex mutex;
  std::string logged DT_GUARDED_BY(mutex);
};

namespace {

// Long enough for a broker to answer, short enough for a worker that is to stop.
constexpr int kSeekMs = 5000;

thread_local std::string error_text;

KafkaError Error(KafkaCode code, std::string text) {
  error_text = std::move(text);
  return {code, error_text.c_str()};
}

KafkaCode CodeOf(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return KafkaCode::kOk;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
      return KafkaCode::kNotFound;
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
      return KafkaCode::kInvalid;
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      return KafkaCode::kDeleted;
    default:
      return KafkaCode::kUnavailable;
  }
}

// The log knows more than the error, such as which host refused a connection.
KafkaError ErrorOf(KafkaTopic* topic, rd_kafka_resp_err_t error) {
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  std::string text = rd_kafka_err2str(error);
  if (CodeOf(error) == KafkaCode::kUnavailable) {
    const MutexLock lock(topic->mutex);
    if (!topic->logged.empty()) text += "; " + topic->logged;
  }
  return Error(CodeOf(error), std::move(text));
}

void KeepLog(const rd_kafka_t* client, int /*level*/, const char* /*facility*/, const char* line) {
  auto* const topic = static_cast<KafkaTopic*>(rd_kafka_opaque(client));
  const MutexLock lock(topic->mutex);
  topic->logged = line;
}

void Release(KafkaTopic* topic) {
  for (rd_kafka_message_t* const message : topic->held) rd_kafka_message_destroy(message);
  topic->held.clear();
  topic->messages.clear();
}

void Close(KafkaTopic* topic) {
  if (topic == nullptr) return;
  Release(topic);
  for (size_t p = 0; p < topic->partitions.size(); ++p) {
    if (topic->partitions[p].reads) rd_kafka_consume_stop(topic->topic, static_cast<int32_t>(p));
  }
  if (topic->topic != nullptr) rd_kafka_topic_destroy(topic->topic);
  if (topic->client != nullptr) rd_kafka_destroy(topic->client);
  std::unique_ptr<KafkaTopic>(topic).reset();
}

KafkaError Open(const char* brokers, const char* topic, const KafkaSetting* settings,
                size_t setting_count, KafkaTopic** out) {
  *out = nullptr;
  char reason[512] = "";
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  std::vector<KafkaSetting> all = {{"bootstrap.servers", brokers},
                                   // A missing offset is an error, and not passed over.
                                   {"auto.offset.reset", "error"},
                                   {"enable.partition.eof", "true"},
                                   {"queued.max.messages.kbytes", "16384"},
                                   {"reconnect.backoff.max.ms", "1000"},
                                   {"log_level", "3"}};
  all.insert(all.end(), settings, settings + setting_count);
  for (const KafkaSetting& each : all) {
    if (rd_kafka_conf_set(conf, each.name, each.value, reason, sizeof reason) == RD_KAFKA_CONF_OK) {
      continue;
    }
    rd_kafka_conf_destroy(conf);
    return Error(KafkaCode::kInvalid, reason);
  }
  auto made = std::make_unique<KafkaTopic>();
  made->name = topic;
  rd_kafka_conf_set_opaque(conf, made.get());
  rd_kafka_conf_set_log_cb(conf, KeepLog);
  made->client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, reason, sizeof reason);
  if (made->client == nullptr) {
    rd_kafka_conf_destroy(conf);
    return Error(KafkaCode::kInvalid, reason);
  }
  made->topic = rd_kafka_topic_new(made->client, topic, nullptr);
  if (made->topic == nullptr) {
    const KafkaError error = ErrorOf(made.get(), rd_kafka_last_error());
    Close(made.release());
    return error;
  }
  *out = made.release();
  return {};
}

KafkaError Partitions(KafkaTopic* topic, int timeout_ms, uint32_t* count) {
  *count = 0;
  const rd_kafka_metadata_t* metadata = nullptr;
  const rd_kafka_resp_err_t error =
      rd_kafka_metadata(topic->client, 0, topic->topic, &metadata, timeout_ms);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return ErrorOf(topic, error);
  rd_kafka_resp_err_t of_topic = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
  if (metadata->topic_cnt == 1) {
    of_topic = metadata->topics[0].err;
    *count = static_cast<uint32_t>(metadata->topics[0].partition_cnt);
  }
  rd_kafka_metadata_destroy(metadata);
  return ErrorOf(topic, of_topic);
}

KafkaError Range(KafkaTopic* topic, uint32_t partition, int timeout_ms, uint64_t* first,
                 uint64_t* end) {
  int64_t low = 0, high = 0;
  const rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(
      topic->client, topic->name.c_str(), static_cast<int32_t>(partition), &low, &high, timeout_ms);
  *first = static_cast<uint64_t>(low);
  *end = static_cast<uint64_t>(high);
  return ErrorOf(topic, error);
}

KafkaError Seek(KafkaTopic* topic, uint32_t partition, uint64_t offset) {
  if (partition >= topic->partitions.size()) topic->partitions.resize(partition + 1);
  KafkaTopic::Partition& of = topic->partitions[partition];
  of.failed = KafkaCode::kOk;
  const auto p = static_cast<int32_t>(partition);
  const auto at = static_cast<int64_t>(offset);
  if (of.reads) return ErrorOf(topic, rd_kafka_seek(topic->topic, p, at, kSeekMs));
  if (rd_kafka_consume_start(topic->topic, p, at) != 0)
    return ErrorOf(topic, rd_kafka_last_error());
  of.reads = true;
  return {};
}

// Fills topic->held; returns -1 for an error, which rd_kafka_last_error names. Only the first
// message is waited for: librdkafka would wait until the batch is full, or the time is over.
ssize_t Consume(KafkaTopic* topic, uint32_t partition, int timeout_ms, size_t count_max) {
  const auto take = [&](size_t begin, size_t count, int timeout) {
    return rd_kafka_consume_batch(topic->topic, static_cast<int32_t>(partition), timeout,
                                  topic->held.data() + begin, count);
  };
  topic->held.resize(count_max);
  ssize_t got = take(0, count_max, 0);
  if (got == 0) {
    got = take(0, 1, timeout_ms);
    if (got == 1) got += std::max<ssize_t>(0, take(1, count_max - 1, 0));
  }
  topic->held.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return got;
}

KafkaError Next(KafkaTopic* topic, uint32_t partition, int timeout_ms, size_t count_max,
                KafkaMessages* out) {
  Release(topic);
  *out = {};
  if (partition >= topic->partitions.size() || !topic->partitions[partition].reads) {
    return Error(KafkaCode::kInvalid, "the partition is read before it is told where");
  }
  KafkaTopic::Partition& of = topic->partitions[partition];
  if (of.failed != KafkaCode::kOk) return Error(of.failed, of.why);
  if (Consume(topic, partition, timeout_ms, count_max) < 0) {
    return ErrorOf(topic, rd_kafka_last_error());
  }
  for (const rd_kafka_message_t* const message : topic->held) {
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      out->end = static_cast<uint64_t>(message->offset);
      continue;
    }
    out->end = 0;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
      of.failed = CodeOf(message->err);
      of.why = rd_kafka_message_errstr(message);
      if (topic->messages.empty()) return Error(of.failed, of.why);
      break;
    }
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    const int64_t time = rd_kafka_message_timestamp(message, &type);
    topic->messages.push_back({static_cast<uint64_t>(message->offset),
                               type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? 0 : time,
                               static_cast<const char*>(message->payload), message->len});
  }
  out->messages = topic->messages.data();
  out->count = topic->messages.size();
  return {};
}

}  // namespace
}  // namespace dt::worker

extern "C" __attribute__((visibility("default"))) bool DtFillKafkaTable(
    uint32_t version, dt::worker::KafkaTable* table) {
  using namespace dt::worker;  // NOLINT(google-build-using-namespace): one C function.
  if (version != kKafkaTableVersion) return false;
  *table = {version, Open, Close, Partitions, Range, Seek, Next};
  return true;
}
