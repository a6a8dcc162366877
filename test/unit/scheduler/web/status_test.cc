#include "scheduler/web/status.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dt::scheduler {
namespace {

JobStatus Sample() {
  JobStatus status;
  status.job = "a \"job\"";
  status.phase = "running";
  status.step = 7;
  status.steps = 10;
  status.places = "3 nodes on cpu";
  status.loss = std::numeric_limits<double>::quiet_NaN();
  status.processes = {{"server", 1, 77, "host", 0.5, 7, 32, 1.5, 100, 200, 300},
                      {"worker", 2, 78, "host", 0.5, 7, 0, 1.5, 100, 200, 300,
                       DeviceInfo{DeviceKind::kEmulated, 0, "emulated accelerator", 1024}}};
  status.tables["item"] = {1000, 900, 100, 5, 6, 7, 8, 9, 10, ""};
  status.history = {{1, 5, 0.5f, {{.auc = 0.75}}, 0.25}};
  status.events = {{1.0, "checkpoint", {{"step", 5.0}}}};
  return status;
}

TEST(Status, JsonHoldsEverything) {
  const nlohmann::json json = nlohmann::json::parse(StatusJson(Sample()));
  EXPECT_EQ(json["job"], "a \"job\"");
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_EQ(json["places"], "3 nodes on cpu");
  EXPECT_EQ(json["processes"][0]["shards"], 32);
  EXPECT_TRUE(json["processes"][0]["accelerator"].is_null());
  EXPECT_EQ(json["processes"][1]["accelerator"]["kind"], "emulated");
  EXPECT_EQ(json["processes"][1]["accelerator"]["memory_bytes"], 1024);
  EXPECT_EQ(json["tables"]["item"]["rows_in_memory"], 900);
  EXPECT_EQ(json["tables"]["item"]["rows_expired"], 7);
  EXPECT_EQ(json["tables"]["item"]["rows_touched"], 8);
  EXPECT_EQ(json["tables"]["item"]["rows_fetched"], 9);
  EXPECT_EQ(json["tables"]["item"]["rows_written"], 10);
  EXPECT_EQ(json["history"][0]["valid"]["auc"], 0.75);
  EXPECT_TRUE(json["history"][0]["valid"]["logloss"].is_null());
  EXPECT_EQ(json["history"][0]["valid_text"], "AUC 0.75000");
  EXPECT_EQ(json["events"][0]["step"], 5);
}

TEST(Status, MetricsAreLinesThatPrometheusReads) {
  const std::string text = StatusMetrics(Sample());
  EXPECT_NE(text.find("# TYPE dovetail_step gauge\n"), std::string::npos);
  EXPECT_NE(text.find("dovetail_step{job=\"a \\\"job\\\"\"} 7\n"), std::string::npos) << text;
  EXPECT_NE(text.find("dovetail_loss{job=\"a \\\"job\\\"\"} NaN\n"), std::string::npos);
  EXPECT_NE(text.find("dovetail_table_rows_on_disk{job=\"a \\\"job\\\"\",table=\"item\"} 100\n"),
            std::string::npos)
      << text;
  EXPECT_NE(
      text.find("dovetail_table_rows_fetched_total{job=\"a \\\"job\\\"\",table=\"item\"} 9\n"),
      std::string::npos);
  EXPECT_NE(text.find(",role=\"server\",id=\"1\"} 300\n"), std::string::npos);
}

}  // namespace
}  // namespace dt::scheduler
