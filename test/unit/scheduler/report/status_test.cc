#include "scheduler/report/status.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/schema/output_schema.h"
#include "test/support/schema_check.h"

namespace dt::scheduler {
namespace {

JobStatus SampleStatus() {
  JobStatus status;
  status.job = "a \"job\"";
  status.phase = "running";
  status.step = 7;
  status.steps = 10;
  status.places = "3 nodes on cpu";
  status.losses = {"click", "rating"};
  status.train = {{"click", 0.5}, {"rating", 2.5}};
  status.learning_rate = 0.01;
  status.samples = 70;
  status.checkpoint = "runs/j/checkpoints/step-5";
  status.last_step_time = 1.5e9;
  status.processes = {{"server", 1, 77, "host", 0.5, 7, 32, 1.5, 100, 200, 300},
                      {"worker", 2, 78, "host", 0.5, 7, 0, 1.5, 100, 200, 300,
                       DeviceInfo{DeviceKind::kEmulated, 0, "emulated accelerator", 1024}}};
  status.processes[0].heads = 20;
  status.processes[0].draining = true;
  status.shards = {.map_version = 7,
                   .replicas = 2,
                   .by_members = {0, 12, 20},
                   .copies = {{5, 1, 4, 1024, 10, 40}},
                   .copies_left = 14,
                   .bytes_left = 4096,
                   .bytes_per_second = 512,
                   .seconds_left = 8,
                   .lost = {"server 2 was killed"}};
  status.tables["item"] = {1000, 900, 100, 5, 6, 7, 8, 9, 10, ""};
  status.history = {{1, 5, 0.5f, 0.02, {{.auc = 0.75, .loss = "click"}}, {{"click", 0.25}}}};
  status.curve = {{4, 2, 100, 0.02, {{"click", 0.5}, {"rating", 3}}}};
  status.events = {{1.0, "checkpoint", {{"step", 5.0}}}};
  return status;
}

TEST(Status, JsonHoldsEverything) {
  const nlohmann::json json = nlohmann::json::parse(StatusJson(SampleStatus()));
  EXPECT_EQ(json["job"], "a \"job\"");
  EXPECT_FALSE(json.contains("loss")) << "a sum of losses beside the losses";
  EXPECT_EQ(json["losses"], nlohmann::json::parse(R"(["click", "rating"])"));
  EXPECT_EQ(json["train"]["rating"]["logloss"], 2.5);
  EXPECT_TRUE(json["seconds_left"].is_null());
  EXPECT_TRUE(json["samples_per_second"].is_null());
  EXPECT_TRUE(json["outcome"].is_null());
  EXPECT_EQ(json["curve"][0]["loss"]["rating"], 3);
  EXPECT_EQ(json["history"][0]["train"]["logloss"], 0.25);
  EXPECT_EQ(json["places"], "3 nodes on cpu");
  EXPECT_EQ(json["processes"][0]["shards"], 32);
  EXPECT_TRUE(json["processes"][0]["accelerator"].is_null());
  EXPECT_EQ(json["processes"][1]["accelerator"]["kind"], "emulated");
  EXPECT_EQ(json["processes"][1]["accelerator"]["memory_bytes"], 1024);
  EXPECT_EQ(json["processes"][0]["heads"], 20);
  EXPECT_EQ(json["processes"][0]["draining"], true);
  EXPECT_EQ(json["shards"]["count"], 32);
  EXPECT_EQ(json["shards"]["short"], 12);
  EXPECT_EQ(json["shards"]["by_members"], nlohmann::json::parse(R"({"1": 12, "2": 20})"));
  EXPECT_EQ(json["shards"]["copies"][0]["rows_of_shard"], 40);
  EXPECT_EQ(json["shards"]["seconds_left"], 8);
  EXPECT_EQ(json["shards"]["lost"][0], "server 2 was killed");
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

TEST(Status, NoFigureIsNullAndNotZero) {
  JobStatus status;
  const nlohmann::json json = nlohmann::json::parse(StatusJson(status));
  for (const char* key : {"train", "samples_per_second", "seconds_left", "checkpoint", "shards"}) {
    EXPECT_TRUE(json.at(key).is_null()) << key;
  }
  status.train = {{"click", 0.5}};
  EXPECT_EQ(nlohmann::json::parse(StatusJson(status))["train"]["logloss"], 0.5);
}

TEST(Status, IsAsItsSchemaSays) {
  const test::SchemaCheck schema(OutputSchemaJson("status"));
  const auto problems = [&](const JobStatus& status) {
    return schema.ProblemsOf(nlohmann::json::parse(StatusJson(status)));
  };
  JobStatus status = SampleStatus();
  EXPECT_EQ(problems(status), std::vector<std::string>{});
  status.train = {{"click", 0.5}};
  Metrics all{.loss = "a"};
  for (const MetricInfo& metric : AllMetrics()) all.*metric.value = 0.5;
  status.history[0].valid = {all, {.accuracy = 1, .loss = "b"}};
  status.outcome = DataLoss("a disk");
  EXPECT_EQ(problems(status), std::vector<std::string>{});
  JobStatus begun;
  begun.phase = "gathering";
  EXPECT_EQ(problems(begun), std::vector<std::string>{});
  nlohmann::json other = nlohmann::json::parse(StatusJson(begun));
  other["more"] = 1;
  other.erase("step");
  EXPECT_EQ(schema.ProblemsOf(other).size(), 2u) << "a key too many, one too few";
}

TEST(Status, AnEndedJobSaysHow) {
  JobStatus status = SampleStatus();
  status.outcome = WithHint(DataLoss("a disk"), "mend it");
  const nlohmann::json outcome = nlohmann::json::parse(StatusJson(status))["outcome"];
  EXPECT_EQ(outcome["status"], "failed");
  EXPECT_EQ(outcome["error"]["hint"], "mend it");
  status.outcome = OkStatus();
  const nlohmann::json completed = nlohmann::json::parse(StatusJson(status))["outcome"];
  EXPECT_EQ(completed["status"], "completed");
  EXPECT_TRUE(completed["error"].is_null());
}

}  // namespace
}  // namespace dt::scheduler
