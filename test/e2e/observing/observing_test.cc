// Goal: what a running job reports to observers is true, the same in all outputs, and conforms to
// its JSON schemas. Method: the real program, asked over HTTP and by `dovetail status`.
#include <algorithm>
#include <cmath>
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/http_get.h"
#include "test/support/schema_check.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

constexpr const char* kTwoLosses =
    "[{type: binary_cross_entropy, input: logit, label: label, name: click},"
    " {type: mse, input: third, label: label, name: rating, weight: 0.01}]";

Json Parsed(const std::string& text) { return Json::parse(text, nullptr, false); }

SchemaCheck SchemaOf(const TempFolder& folder, const std::string& output) {
  return SchemaCheck(RunProgram(folder.path(), {"schema", output}).output);
}

// The address of the job's page, with the final slash; empty if there is none.
std::string PageOf(const TempFolder& folder, const std::string& job) {
  const Json run = Parsed(folder.Read("runs/" + job + "/run.json"));
  return run.is_object() && run["http"].is_string() ? run["http"].get<std::string>() : "";
}

// The value of one metric in the text of /metrics; NaN if it is absent.
double MetricOf(const std::string& text, const std::string& metric) {
  const size_t at = text.find("\n" + metric + " ");
  return at == std::string::npos ? std::nan("") : std::stod(text.substr(at + metric.size() + 2));
}

double SumOf(const Json& processes, const char* role, const char* field) {
  double sum = 0;
  for (const Json& p : processes) {
    if (p["role"] == role && p[field].is_number()) sum += p[field].get<double>();
  }
  return sum;
}

TEST(Observing, ARunningJobSaysTheSameEverywhere) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 100'000,
                                                .slices = 2,
                                                .servers = 2,
                                                .workers = 2,
                                                .loss = kTwoLosses,
                                                .more = "checkpoint: {every: 20}"});
  Program launch(folder.path(), {"launch", job, "--result", "r.json"});
  const SchemaCheck schema = SchemaOf(folder, "status");
  std::string page;
  Json status;
  ASSERT_TRUE(Eventually(seconds(60),
                         [&] {
                           page = PageOf(folder, "tiny");
                           const HttpAnswer answer = HttpGet(page + "status");
                           if (answer.status != 200) return false;
                           status = Parsed(answer.body);
                           EXPECT_THAT(schema.ProblemsOf(status), IsEmpty());
                           const bool begun =
                               !status["train"].is_null() && !status["history"].empty();
                           return begun && status["checkpoint"].is_string() &&
                                  status["samples_per_second"].is_number() &&
                                  SumOf(status["processes"], "worker", "bytes_sent") > 2e6;
                         }))
      << status.dump(1) << launch.Output();
  EXPECT_EQ(HttpGet(page + "healthz").body, "ok\n");
  EXPECT_EQ(HttpGet(page + "readyz").status, 200);
  EXPECT_EQ(HttpGet(page + "elsewhere").status, 404);

  EXPECT_EQ(status["losses"], (Json{"click", "rating"}));
  // Each loss is reported by itself, however small its weight in the sum.
  const Json& last = status["history"].back();
  for (const char* loss : {"click", "rating"}) {
    const double train = last["train"][loss]["logloss"], valid = last["valid"][loss]["logloss"];
    EXPECT_GT(train, 0.3 * valid) << loss;
    EXPECT_LT(train, 3 * valid) << loss;
  }
  EXPECT_NEAR(status["learning_rate"], 0.01, 1e-6);
  EXPECT_EQ(status["curve"].back()["loss"].size(), 2u);

  const std::string metrics = HttpGet(page + "metrics").body;
  EXPECT_GT(MetricOf(metrics, "dovetail_train_loss{loss=\"rating\"}"), 0) << metrics;
  EXPECT_GT(MetricOf(metrics, "dovetail_last_step_timestamp_seconds"), 1.5e9) << metrics;
  EXPECT_GT(MetricOf(metrics, "dovetail_last_checkpoint_timestamp_seconds"), 1.5e9) << metrics;
  for (const Json& p : status["processes"]) {
    const std::string labels =
        "{role=\"" + p["role"].get<std::string>() + "\",id=\"" + p["id"].dump() + "\"}";
    EXPECT_GT(MetricOf(metrics, "dovetail_process_sent_bytes_total" + labels), 0) << metrics;
  }

  const ProgramEnd json = RunProgram(folder.path(), {"status", job, "--json"});
  EXPECT_THAT(schema.ProblemsOf(Parsed(json.output)), IsEmpty());
  EXPECT_THAT(RunProgram(folder.path(), {"status", job}).output,
              HasSubstr(" samples/s, loss click 0."));

  const Json before = Parsed(HttpGet(page + "status").body);
  launch.Signal(SIGINT);
  EXPECT_EQ(launch.Wait(seconds(30)).exit_code, 130);
  const Json result = Parsed(folder.Read("r.json"));
  EXPECT_EQ(result["status"], "interrupted");
  for (const char* role : {"worker", "server"}) {
    for (const char* field : {"bytes_sent", "bytes_received"}) {
      EXPECT_GE(SumOf(result["roles"], role, field), SumOf(before["processes"], role, field))
          << role << " " << field;
    }
  }
  EXPECT_GE(result["curve"].size(), before["curve"].size() / 2);

  const std::string manifest = CheckpointsOf(folder, "tiny").back() + "/manifest.json";
  EXPECT_THAT(SchemaOf(folder, "manifest").ProblemsOf(Parsed(folder.Read(manifest))), IsEmpty());
}

TEST(Observing, PlansAreAsTheirSchemaSays) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.slices = 2, .loss = kTwoLosses});
  const SchemaCheck schema = SchemaOf(folder, "plan");
  for (const char* pass : {"expand", "differentiate", "subgraphs", "memory_plan"}) {
    const ProgramEnd plan =
        RunProgram(folder.path(), {"plan", job, "--after", pass, "--format", "json"});
    EXPECT_THAT(schema.ProblemsOf(Parsed(plan.output)), IsEmpty()) << pass;
  }
}

TEST(Observing, OneProcessIsOneProcess) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 100'000});
  Program train(folder.path(), {"train", job, "--result", "r.json"});
  const SchemaCheck schema = SchemaOf(folder, "status");
  Json status;
  ASSERT_TRUE(Eventually(seconds(60), [&] {
    status = Parsed(HttpGet(PageOf(folder, "tiny") + "status").body);
    return status.is_object() && !status["train"].is_null();
  })) << train.Output();
  EXPECT_THAT(schema.ProblemsOf(status), IsEmpty());
  ASSERT_EQ(status["processes"].size(), 1u) << status.dump(1);
  EXPECT_EQ(status["processes"][0]["role"], "train");
  EXPECT_EQ(status["processes"][0]["pid"], train.pid());
  EXPECT_TRUE(status["train"]["logloss"].is_number()) << "of one loss as ever";
  train.Signal(SIGINT);
  EXPECT_EQ(train.Wait(seconds(30)).exit_code, 130);
  const Json roles = Parsed(folder.Read("r.json"))["roles"];
  ASSERT_EQ(roles.size(), 3u);
  EXPECT_GT(roles[0]["cpu_seconds"], 0);
  for (const size_t other : {1, 2}) {
    EXPECT_EQ(roles[other]["pid"], roles[0]["pid"]);
    EXPECT_TRUE(roles[other]["cpu_seconds"].is_null()) << "counted once";
  }
}

TEST(Observing, ALearningRateThatBlowsUpIsTold) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  const ProgramEnd end =
      RunProgram(folder.path(), {"train", job, "--set", "optimizer.lr=1e6", "--set",
                                 "model.tables.deep.optimizer.lr=1e6", "--result", "r.json"});
  EXPECT_EQ(end.exit_code, 0) << end.output;
  EXPECT_THAT(end.output, HasSubstr("job.loss_diverged"));
  EXPECT_THAT(end.output, HasSubstr("\nwarning: loss label has diverged: "));
  const Json events = Parsed(folder.Read("r.json"))["events"];
  EXPECT_EQ(
      std::ranges::count_if(events, [](const Json& e) { return e["kind"] == "loss_diverged"; }), 1);
  const ProgramEnd sane = RunProgram(folder.path(), {"train", job});
  EXPECT_EQ(sane.output.find("diverged"), std::string::npos) << sane.output;
}

}  // namespace
}  // namespace dt::test
