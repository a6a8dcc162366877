#include "common/cluster/job_result.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace dt {
namespace {

using Json = nlohmann::json;

TEST(JobResult, EverythingAbsentIsNull) {
  JobResult result;
  result.job = "j";
  const Json json = Json::parse(ToJson(result));
  EXPECT_EQ(json["status"], "completed");
  EXPECT_TRUE(json["error"].is_null());
  EXPECT_TRUE(json["best"].is_null());
  EXPECT_TRUE(json["plan"].is_null());
  EXPECT_TRUE(json["metrics"]["train"]["logloss"].is_null());
  EXPECT_TRUE(json["metrics"]["test"]["auc"].is_null());
  EXPECT_TRUE(json["samples_per_second"].is_null());
  EXPECT_TRUE(json["checksum"]["dense"].is_null());
  for (const char* key : {"samples", "steps", "epochs", "seconds", "seconds_total", "checkpoint",
                          "roles", "tables", "events", "history"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
}

TEST(JobResult, EveryValueHasItsPlace) {
  JobResult result;
  result.samples = 100;
  result.seconds = 4;
  result.valid = LossMetrics{{0.75, 0.5, 1.0, 10, false}};
  result.best = JobResult::Best{3, *result.valid};
  result.plan = JobResult::PlanCheck{0.25, 0.5};
  result.roles = {{"server", 1, 77, JobResult::Usage{1.5, 2, 3, 4}}, {"worker", 2, 77, {}}};
  result.tables["item"] = {
      .rows = 5, .rows_in_memory = 4, .rows_on_disk = 1, .bytes = 80, .checksum = "00ff"};
  result.events = {{1.5, "checkpoint", {{"step", 20.0}, {"folder", std::string("f")}}}};
  result.history = {{1, 10, 0.5f, 0.01, *result.valid, {{"click", 0.25}}}};
  result.curve = {{4, 2, 100, 0.02, {{"click", 0.5}}}, {6, 2, 50, 0.01, {{"click", 0.25}}}};
  const Json json = Json::parse(ToJson(result));
  EXPECT_EQ(json["samples_per_second"], 25);
  EXPECT_EQ(json["metrics"]["valid"]["auc"], 0.75);
  EXPECT_EQ(json["metrics"]["valid"]["auc_exact"], false);
  EXPECT_EQ(json["best"]["epoch"], 3);
  EXPECT_EQ(json["plan"]["predicted_seconds_per_step"], 0.25);
  EXPECT_EQ(json["plan"]["measured_seconds_per_step"], 0.5);
  EXPECT_EQ(json["roles"][0]["pid"], 77);
  EXPECT_EQ(json["roles"][0]["cpu_seconds"], 1.5);
  EXPECT_EQ(json["roles"][1]["pid"], 77);
  // The process was already reported by the first role.
  EXPECT_TRUE(json["roles"][1]["cpu_seconds"].is_null());
  EXPECT_EQ(json["tables"]["item"]["rows_on_disk"], 1);
  EXPECT_EQ(json["checksum"]["tables"]["item"], "00ff");
  EXPECT_EQ(json["events"][0]["folder"], "f");
  EXPECT_EQ(json["events"][0]["step"], 20);
  EXPECT_EQ(json["history"][0]["train"]["logloss"], 0.25);
  EXPECT_EQ(json["history"][0]["learning_rate"], 0.01);
  EXPECT_EQ(json["curve"][0]["step"], 4);
  EXPECT_EQ(json["curve"][0]["loss"]["click"], 0.5);
  EXPECT_EQ(json["curve"][0]["samples_per_second"], 50);
  // No time passed since the last point.
  EXPECT_TRUE(json["curve"][1]["samples_per_second"].is_null());
}

TEST(JobResult, SeveralLossesStandByTheirNames) {
  JobResult result;
  result.test = LossMetrics{{.auc = 0.75, .logloss = 0.5, .samples = 10, .loss = "click"},
                            {.logloss = 1.5, .samples = 10, .accuracy = 0.25, .loss = "next"}};
  result.train = {{"click", 0.25}, {"next", 2.5}};
  const Json metrics = Json::parse(ToJson(result))["metrics"];
  EXPECT_EQ(metrics["train"],
            Json::parse(R"({"click": {"logloss": 0.25}, "next": {"logloss": 2.5}})"));
  const Json json = metrics["test"];
  EXPECT_EQ(json.size(), 2u);
  EXPECT_EQ(json["click"]["auc"], 0.75);
  EXPECT_FALSE(json["click"].contains("accuracy"));
  EXPECT_EQ(json["next"]["accuracy"], 0.25);
  EXPECT_EQ(json["next"]["logloss"], 1.5);
}

TEST(JobResult, FailuresSayWhatWhereAndHint) {
  JobResult result;
  result.status = WithHint(WithWhere(Malformed("bad \xff line"), "a.csv:3"), "mend it");
  const Json json = Json::parse(ToJson(result));
  EXPECT_EQ(json["status"], "failed");
  EXPECT_EQ(json["error"]["where"], "a.csv:3");
  EXPECT_EQ(json["error"]["hint"], "mend it");
  result.status = Cancelled("SIGTERM");
  EXPECT_EQ(Json::parse(ToJson(result))["status"], "interrupted");
}

TEST(JobResult, NumbersThatJsonLacksAreNull) {
  JobResult result;
  result.train = {{"click", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_TRUE(Json::parse(ToJson(result))["metrics"]["train"]["logloss"].is_null());
}

}  // namespace
}  // namespace dt
