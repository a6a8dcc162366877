// Goal: /metrics passes `promtool check metrics`, whose rules are: each metric has one HELP and one
// TYPE before its lines, counters and no others end in _total, names contain whole units, and each
// line has a number.
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "scheduler/report/status.h"

namespace dt::scheduler {
namespace {

JobStatus Sample() {
  JobStatus status;
  status.job = "a \"job\"";
  status.step = 7;
  status.samples = 70;
  status.samples_per_second = 12.5;
  status.losses = {"click", "rating"};
  status.train = {{"click", 0.5}, {"rating", 2.5}};
  status.last_step_time = 1.5e9;
  status.last_checkpoint_time = 1.25e9;
  status.processes = {{"server", 1, 77, "host", 0.5, 7, 32, 1.5, 100, 200, 300},
                      {"worker", 2, 78, "host", 0.5, 7, 0, 1.5, 100, 200, 300}};
  status.processes[0].heads = 20;
  status.processes[0].copied_bytes = 99;
  status.shards = {.map_version = 7, .replicas = 2, .by_members = {0, 12, 20}, .copies_left = 14};
  status.tables["item"] = {1000, 900, 100, 5, 6, 7, 8, 9, 10, ""};
  status.history = {{1,
                     5,
                     0.5f,
                     0.1,
                     {{.auc = 0.75, .loss = "click", .gauc = 0.5}, {.loss = "rating", .rmse = 2}},
                     {}}};
  return status;
}

// A parsed text in the format of Prometheus.
struct Scrape {
  std::map<std::string, std::string> types;  // The type of each metric.
  std::set<std::string> lines;
  std::vector<std::string> complaints;

  explicit Scrape(const std::string& text) {
    std::string metric;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string hash, word, name, type;
      if (line.starts_with("# HELP ")) {
        words >> hash >> word >> metric >> type;
        if (type.empty()) complaints.push_back(metric + " has no help");
        if (types.contains(metric)) complaints.push_back(metric + " is there twice");
        continue;
      }
      if (line.starts_with("# TYPE ")) {
        words >> hash >> word >> name >> type;
        if (name != metric) complaints.push_back("TYPE of " + name + " without HELP");
        types[name] = type;
        Check(name, type);
        continue;
      }
      lines.insert(line);
      name = line.substr(0, line.find_first_of("{ "));
      if (name != metric || !types.contains(name)) complaints.push_back("no head: " + line);
      if (line.find("{job=") != line.npos || line.find(",job=") != line.npos) {
        complaints.push_back("a label that Prometheus sets itself: " + line);
      }
      const std::string value = line.substr(line.rfind(' ') + 1);
      if (value.find_first_not_of("0123456789.e+-") != value.npos) {
        complaints.push_back("no number: " + line);
      }
    }
  }

  void Check(const std::string& name, const std::string& type) {
    if (type != "gauge" && type != "counter") complaints.push_back(name + ": type " + type);
    if (name.ends_with("_total") != (type == "counter")) complaints.push_back(name + " is " + type);
    if (!name.starts_with("dovetail_")) complaints.push_back(name + " has no prefix");
    static const std::set<std::string> kNotWhole = {"s",    "ms",      "sec",   "mb",    "kb",
                                                    "gb",   "mib",     "bits",  "ms",    "minutes",
                                                    "hour", "percent", "gauge", "count", "counter"};
    for (std::string_view part : SplitText(name, '_')) {
      if (kNotWhole.contains(std::string(part))) complaints.push_back(name + ": unit");
    }
    for (const char c : name) {
      const bool good = c == '_' || (std::islower(c) != 0) || (std::isdigit(c) != 0);
      if (!good) complaints.push_back(name + ": letters");
    }
  }
};

TEST(Metrics, PassPromtool) {
  const Scrape scrape(StatusMetrics(Sample()));
  EXPECT_EQ(scrape.complaints, std::vector<std::string>{});
  EXPECT_EQ(scrape.types.at("dovetail_samples_total"), "counter");
  EXPECT_EQ(scrape.types.at("dovetail_process_sent_bytes_total"), "counter");
  for (const char* line : {
           "dovetail_job_info{job_name=\"a \\\"job\\\"\"} 1",
           "dovetail_step 7",
           "dovetail_samples_per_second 12.5",
           "dovetail_train_loss{loss=\"rating\"} 2.5",
           "dovetail_valid_auc{loss=\"click\"} 0.75",
           "dovetail_valid_gauc{loss=\"click\"} 0.5",
           "dovetail_valid_rmse{loss=\"rating\"} 2",
           "dovetail_last_step_timestamp_seconds 1500000000",
           "dovetail_last_checkpoint_timestamp_seconds 1250000000",
           "dovetail_process_received_bytes_total{role=\"server\",id=\"1\"} 300",
           "dovetail_table_rows_fetched_total{table=\"item\"} 9",
           "dovetail_shard_map_version 7",
           "dovetail_shards{server=\"1\",role=\"member\"} 32",
           "dovetail_shards{server=\"1\",role=\"head\"} 20",
           "dovetail_shards_short 12",
           "dovetail_shard_copies_left 14",
           "dovetail_shard_copy_bytes_total{server=\"1\"} 99",
           "dovetail_servers_lost_total 0",
       }) {
    EXPECT_TRUE(scrape.lines.contains(line)) << line << "\nis not in\n" << StatusMetrics(Sample());
  }
}

TEST(Metrics, WhatIsNotKnownHasNoLine) {
  JobStatus status;
  status.train = {{"click", std::numeric_limits<double>::quiet_NaN()}};
  const Scrape scrape(StatusMetrics(status));
  EXPECT_EQ(scrape.complaints, std::vector<std::string>{});
  for (const char* name :
       {"dovetail_train_loss", "dovetail_samples_per_second", "dovetail_valid_auc",
        "dovetail_last_step_timestamp_seconds", "dovetail_last_checkpoint_timestamp_seconds"}) {
    EXPECT_FALSE(scrape.types.contains(name)) << name;
  }
}

}  // namespace
}  // namespace dt::scheduler
