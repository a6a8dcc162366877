// A Kafka cluster in this process, for tests: librdkafka's mock of one, with one broker. It prints
// "brokers HOST:PORT", then carries out the commands on standard input, one a line, words separated
// by tabs, and answers each with a line:
//   create TOPIC PARTITIONS
//   put TOPIC PARTITION TEXT    writes a message; no answer
//   flush                       waits until all messages are written
//   down, up                    stops the broker, and starts it again
// A partition keeps its newest messages only, about 5 MB of them.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

namespace dt::test {
namespace {

constexpr int kFlushMs = 60'000;

std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, '\t');) words.push_back(word);
  return words;
}

class Cluster {
 public:
  Cluster() {
    char why[512] = "";
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "client.id", "mock", nullptr, 0);
    rd_kafka_conf_set(conf, "linger.ms", "5", nullptr, 0);
    rd_kafka_conf_set(conf, "queue.buffering.max.messages", "2000000", nullptr, 0);
    rd_kafka_conf_set(conf, "log_level", "0", nullptr, 0);
    // This setting makes a cluster, to which the producer connects.
    rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", why, sizeof why);
    producer_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (producer_ == nullptr) return;
    cluster_ = rd_kafka_handle_mock_cluster(producer_);
  }
  ~Cluster() {
    if (producer_ != nullptr) rd_kafka_destroy(producer_);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  bool ok() const { return cluster_ != nullptr; }
  std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }

  bool Do(const std::vector<std::string>& words) {
    const std::string& what = words[0];
    if (what == "create" && words.size() == 3) {
      return rd_kafka_mock_topic_create(cluster_, words[1].c_str(), std::stoi(words[2]), 1) == 0;
    }
    if (what == "flush") return rd_kafka_flush(producer_, kFlushMs) == 0;
    if (what == "down") return rd_kafka_mock_broker_set_down(cluster_, 1) == 0;
    if (what == "up") return rd_kafka_mock_broker_set_up(cluster_, 1) == 0;
    return false;
  }

  bool Put(const std::vector<std::string>& words) {
    for (;;) {
      const rd_kafka_resp_err_t error = rd_kafka_producev(
          producer_, RD_KAFKA_V_TOPIC(words[1].c_str()), RD_KAFKA_V_PARTITION(std::stoi(words[2])),
          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
          RD_KAFKA_V_VALUE(const_cast<char*>(words[3].data()), words[3].size()), RD_KAFKA_V_END);
      rd_kafka_poll(producer_, error == RD_KAFKA_RESP_ERR__QUEUE_FULL ? 100 : 0);
      if (error != RD_KAFKA_RESP_ERR__QUEUE_FULL) return error == RD_KAFKA_RESP_ERR_NO_ERROR;
    }
  }

 private:
  rd_kafka_t* producer_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
};

int Run() {
  Cluster cluster;
  if (!cluster.ok()) return 1;
  std::cout << "brokers " << cluster.brokers() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> words = WordsOf(line);
    if (words.empty()) continue;
    if (words[0] == "put" && words.size() == 4) {
      if (!cluster.Put(words)) std::cout << "failed " << line << std::endl;
      continue;
    }
    std::cout << (cluster.Do(words) ? "done " : "failed ") << words[0] << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace dt::test

int main() { return dt::test::Run(); }
