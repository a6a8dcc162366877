// Goal: the three roles work together without the program around them: they learn, and with equal
// slices the parameters are equal for any number of workers and servers. Method: real schedulers,
// servers and workers in threads of one process over inproc sockets (Gloo over loopback between
// workers), on a small generated data set.
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "test/e2e/in_process/in_process_job.h"
#include "test/support/cuda_on_host/cuda_on_host.h"

namespace dt {
namespace {

using test::ExpectCompleted;
using test::JobRun;
using test::JobShape;
using test::RunJob;
using test::RunOptions;

// Checksums and row counts that are equal if and only if the parameters are.
std::map<std::string, std::string> Checksums(const JobResult& result) {
  std::map<std::string, std::string> sums = {{"dense", result.dense_checksum}};
  for (const auto& [name, table] : result.tables) {
    sums["table " + name] = table.checksum;
    sums["rows " + name] = std::to_string(table.rows);
  }
  return sums;
}

TEST(InProcessTest, OneOfEachLearns) {
  const test::TempFolder folder;
  const JobRun run = RunJob(folder, "learns", {});
  ExpectCompleted(run);
  ASSERT_TRUE(run.result.valid.has_value());
  ASSERT_GE(run.result.history.size(), 2);
  EXPECT_LT(run.result.history.back().train.at(0).mean,
            run.result.history.front().train.at(0).mean);
  EXPECT_GT(run.result.valid->at(0).auc.value_or(0), 0.6);
  EXPECT_EQ(run.result.steps, 3 * 12);
  EXPECT_EQ(run.result.samples, 3 * 3000);
}

TEST(InProcessTest, EqualSlicesGiveEqualParametersForAnyNumberOfProcesses) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "one", {.servers = 1, .workers = 1, .slices = 2});
  ExpectCompleted(one);
  for (const JobShape& shape :
       {JobShape{1, 2, 2}, JobShape{2, 1, 2}, JobShape{2, 2, 2}, JobShape{1, 3, 2}}) {
    const std::string name = fmt::format("s{}w{}", shape.servers, shape.workers);
    const JobRun other = RunJob(folder, name, shape);
    ExpectCompleted(other);
    EXPECT_EQ(Checksums(other.result), Checksums(one.result)) << name;
    EXPECT_EQ(other.result.train, one.result.train) << name;
    EXPECT_EQ(other.result.valid->at(0).auc, one.result.valid->at(0).auc) << name;
  }
}

// On the emulated accelerator copies and replicas keep every bit. A checkpoint does not record
// where tables and nodes were placed.
TEST(InProcessTest, PlacementsGiveEqualParametersAlsoWhenResumedUnderAnother) {
  const test::TempFolder folder;
  const JobShape cpu = {.workers = 2, .slices = 2};
  const JobRun one = RunJob(folder, "cpu", cpu);
  ExpectCompleted(one);
  for (const char* match : {"hidden*", "*.grad*", "*"}) {
    JobShape shape = cpu;
    shape.more = fmt::format("parallel: {{place: [{{match: \"{}\", device: gpu}}]}}\n", match);
    const JobRun other = RunJob(folder, "gpu", shape);
    ExpectCompleted(other);
    EXPECT_EQ(Checksums(other.result), Checksums(one.result)) << match;
    EXPECT_EQ(other.result.valid->at(0).auc, one.result.valid->at(0).auc) << match;
    JobShape first = shape;
    first.epochs = 1;
    ExpectCompleted(RunJob(folder, "both", first));
    const JobRun resumed = RunJob(folder, "both", cpu, {.resume = "auto"});
    ExpectCompleted(resumed);
    EXPECT_EQ(Checksums(resumed.result), Checksums(one.result)) << match << ", resumed";
  }
}

// DLRM on an accelerator fast enough to be used: the planner itself chooses to use both devices.
TEST(InProcessTest, AnAutomaticPlacementGivesEqualParameters) {
  const test::TempFolder folder;
  JobShape shape = {.workers = 2, .slices = 2};
  shape.set = {
      "model.graph=[{name: e, op: lookup, table: deep, inputs: [features]}, "
      "{name: first, op: linear, table: wide, inputs: [features]}, "
      "{name: pairs, op: dot, inputs: [e]}, {name: top, op: mlp, inputs: [e, pairs], "
      "units: [64, 32], batch_norm: true, dropout: 0.4}, {name: third, op: dense, inputs: [top], "
      "units: 1}, {name: logit, op: sum, inputs: [first, third]}]",
      "cluster.devices=cpu"};
  const JobRun one = RunJob(folder, "one", shape);
  ExpectCompleted(one);
  shape.set.back() = "cluster.devices=emulated";
  shape.set.push_back("parallel.profile=" +
                      folder.Write("fast.yaml",
                                   "cpu: {fp32_flops: 1e9, memory_bytes_per_second: 1e9}\n"
                                   "accelerator: {fp32_flops: 1e12, launch_seconds: 0}\n"
                                   "to_accelerator: {bytes_per_second: 1e9}\n"));
  const JobRun other = RunJob(folder, "other", shape);
  ExpectCompleted(other);
  EXPECT_EQ(Checksums(other.result), Checksums(one.result));
  EXPECT_EQ(other.result.valid, one.result.valid);
  std::map<Stream, size_t> nodes;
  for (const Subgraph& subgraph : other.plan.train) nodes[subgraph.stream] += subgraph.nodes.size();
  EXPECT_GT(nodes[Stream::kGpu], 10u);
  EXPECT_GT(nodes[Stream::kToGpu], 0u);
  EXPECT_GT(nodes[Stream::kToCpu], 0u);
}

// Places the tables "deep" and "wide" on these devices.
JobShape TablesOn(const char* deep, const char* wide, uint32_t epochs = 3) {
  return {.epochs = epochs,
          .set = {fmt::format("model.tables.deep.device={}", deep),
                  fmt::format("model.tables.wide.device={}", wide)}};
}

// A table may be anywhere, and elsewhere after a resume; the arithmetic is the same.
TEST(InProcessTest, WhereTablesLiveChangesNothing) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "ps", {});
  ExpectCompleted(one);
  const std::pair<const char*, const char*> places[] = {
      {"cpu", "cpu"}, {"gpu", "cpu"}, {"gpu", "gpu"}, {"ps", "cpu"}, {"gpu", "ps"}};
  for (const auto& [deep, wide] : places) {
    SCOPED_TRACE(fmt::format("deep on {}, wide on {}", deep, wide));
    const JobRun other = RunJob(folder, "moved", TablesOn(deep, wide));
    ExpectCompleted(other);
    EXPECT_EQ(Checksums(other.result), Checksums(one.result));
    EXPECT_EQ(other.result.train, one.result.train);
    EXPECT_EQ(other.result.valid, one.result.valid);
    EXPECT_EQ(other.result.tables.at("deep").bytes, one.result.tables.at("deep").bytes);
  }
}

TEST(InProcessTest, TablesMoveBetweenDevicesWhenAJobIsResumed) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "ps", {});
  ExpectCompleted(one);
  using Places = std::pair<const char*, const char*>;
  const std::pair<Places, Places> moves[] = {{{"cpu", "gpu"}, {"cpu", "gpu"}},
                                             {{"cpu", "gpu"}, {"ps", "ps"}},
                                             {{"ps", "ps"}, {"gpu", "cpu"}},
                                             {{"gpu", "ps"}, {"ps", "cpu"}}};
  for (const auto& [from, to] : moves) {
    SCOPED_TRACE(fmt::format("{} {} to {} {}", from.first, from.second, to.first, to.second));
    ExpectCompleted(RunJob(folder, "moved", TablesOn(from.first, from.second, 1)));
    const JobRun resumed =
        RunJob(folder, "moved", TablesOn(to.first, to.second), {.resume = "auto"});
    ExpectCompleted(resumed);
    EXPECT_EQ(Checksums(resumed.result), Checksums(one.result));
    EXPECT_EQ(resumed.result.valid, one.result.valid);
  }
}

// Compares all results that must not depend on the number of processes.
void ExpectSame(const JobRun& run, const JobRun& want) {
  ExpectCompleted(run);
  EXPECT_EQ(Checksums(run.result), Checksums(want.result));
  EXPECT_EQ(run.result.train, want.result.train);
  EXPECT_EQ(run.result.valid, want.result.valid);
  for (const auto& [name, table] : want.result.tables) {
    EXPECT_EQ(run.result.tables.at(name).bytes, table.bytes) << name;
  }
}

// Every worker holds the whole table and updates it with the rows of all slices, so all workers,
// and servers in their stead, end with the same rows.
TEST(InProcessTest, TablesOnWorkersAreTheSameOnAllOfThem) {
  const test::TempFolder folder;
  for (const char* wide_rule : {"adagrad", "sgd"}) {
    const std::string rule =
        fmt::format("model.tables.wide.optimizer={{name: {}, lr: 0.05}}", wide_rule);
    JobShape shape{.slices = 4, .epochs = 1, .set = {rule}};
    const JobRun one = RunJob(folder, "ps", shape);
    ExpectCompleted(one);
    const std::pair<const char*, const char*> places[] = {
        {"cpu", "cpu"}, {"gpu", "cpu"}, {"gpu", "gpu"}, {"ps", "gpu"}};
    for (const auto& [deep, wide] : places) {
      for (const uint32_t workers : {1, 2, 3}) {
        SCOPED_TRACE(
            fmt::format("deep on {}, wide on {}, {} workers, {}", deep, wide, workers, wide_rule));
        shape.workers = workers;
        shape.set = TablesOn(deep, wide).set;
        shape.set.push_back(rule);
        shape.set.push_back(fmt::format("parallel.overlap={}", workers != 3));
        ExpectSame(RunJob(folder, "workers", shape), one);
      }
    }
  }
}

// There are more workers than slices; in the second run all nodes are on the accelerator too.
TEST(InProcessTest, AWorkerWithoutASliceHasTheSameTables) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "ps", {.epochs = 1});
  ExpectCompleted(one);
  for (const char* device : {"cpu", "gpu"}) {
    JobShape shape = TablesOn(device, device, 1);
    shape.workers = 2;
    ExpectSame(RunJob(folder, device, shape), one);
    shape.more = "parallel: {place: [{match: \"*\", device: gpu}]}\n";
    ExpectSame(RunJob(folder, "placed", shape), one);
  }
}

TEST(InProcessTest, TablesOnWorkersAreSavedOnceAndResumedByAnyNumber) {
  const test::TempFolder folder;
  JobShape shape = {.slices = 2};
  const JobRun one = RunJob(folder, "ps", shape);
  ExpectCompleted(one);
  const std::pair<const char*, uint32_t> others[] = {{"cpu", 1}, {"gpu", 2}, {"cpu", 3}, {"ps", 2}};
  for (const auto& [device, workers] : others) {
    SCOPED_TRACE(fmt::format("resumed by {} workers on {}", workers, device));
    JobShape first = TablesOn("cpu", "gpu", 1);
    first.slices = first.workers = 2;
    ExpectCompleted(RunJob(folder, "moved", first));
    const std::string saved = folder.path() + "/runs/moved/checkpoints/step-000000000012";
    EXPECT_TRUE(std::filesystem::exists(saved + "/worker-0/rows-0"));
    EXPECT_FALSE(std::filesystem::exists(saved + "/worker-1"));
    JobShape resumed = TablesOn(device, device);
    resumed.slices = 2;
    resumed.workers = workers;
    ExpectSame(RunJob(folder, "moved", resumed, {.resume = "auto"}), one);
  }
}

TEST(InProcessTest, KeysBeyondTheRowsOfATableEndTheJob) {
  const test::TempFolder folder;
  JobShape shape = TablesOn("cpu", "ps", 1);
  shape.set.emplace_back("model.tables.deep.rows=5160");
  ExpectCompleted(RunJob(folder, "enough", shape));
  shape.set.back() = "model.tables.deep.rows=5150";
  const JobRun run = RunJob(folder, "few", shape);
  EXPECT_EQ(run.result.status.code(), StatusCode::kOutOfRange) << run.result.status;
  EXPECT_NE(ToText(run.result.status).find("table deep has rows 0 to 5149"), std::string::npos)
      << run.result.status;
}

// All types of loss at once; two of them are computed over the items of the slice.
TEST(InProcessTest, SeveralLossesGiveEqualParametersForAnyNumberOfWorkers) {
  const test::TempFolder folder;
  JobShape shape = {.servers = 1, .workers = 1, .slices = 2};
  shape.loss =
      "[{type: binary_cross_entropy, input: logit, label: label, name: click},"
      " {type: mse, input: third, label: label, name: value, weight: 0.5},"
      " {type: softmax_cross_entropy, input: hidden, label: label, name: class},"
      " {type: in_batch_softmax, input: hidden, item: hidden, label: label, name: pairs}]";
  const JobRun one = RunJob(folder, "one", shape);
  ExpectCompleted(one);
  const LossMetrics& valid = one.result.valid.value();
  ASSERT_EQ(valid.size(), 4u);
  EXPECT_EQ(valid[0].loss, "click");
  EXPECT_GT(valid[0].auc.value_or(0), 0.6);
  EXPECT_LT(valid[1].logloss.value_or(1), 0.25) << "better than one half everywhere";
  EXPECT_GT(valid[2].accuracy.value_or(0), 0.25) << "one in eight by chance";
  EXPECT_FALSE(valid[2].auc.has_value());
  EXPECT_GT(valid[3].logloss.value_or(0), 0);
  // Each loss reports its own mean, whatever its weight in the sum.
  ASSERT_EQ(one.result.train.size(), 4u);
  for (const size_t l : {0, 1, 2}) {
    EXPECT_EQ(one.result.train[l].loss, valid[l].loss);
    EXPECT_GT(one.result.train[l].mean, 0.8 * *valid[l].logloss) << valid[l].loss;
    EXPECT_LT(one.result.train[l].mean, 2 * *valid[l].logloss) << valid[l].loss;
  }
  EXPECT_LT(one.result.history.back().train.at(0).mean,
            one.result.history.front().train.at(0).mean);
  shape.workers = 2, shape.servers = 2;
  const JobRun two = RunJob(folder, "two", shape);
  ExpectCompleted(two);
  EXPECT_EQ(Checksums(two.result), Checksums(one.result));
  EXPECT_EQ(two.result.train, one.result.train);
  EXPECT_EQ(two.result.valid, one.result.valid);
}

// Rows are sent to experts by their values, so matrix sizes differ from slice to slice.
TEST(InProcessTest, ExpertsGiveEqualParametersForAnyNumberOfWorkersAndPlacement) {
  const test::TempFolder folder;
  JobShape shape = {.workers = 1, .slices = 4};
  shape.set = {
      "model.graph=[{name: e, op: lookup, table: deep, inputs: [features]}, "
      "{name: first, op: linear, table: wide, inputs: [features]}, "
      "{name: mix, op: moe, inputs: [e], experts: 5, k: 2, units: [24, 8]}, "
      "{name: one, op: moe, inputs: [mix], experts: 3, k: 1, units: [6], activation: gelu}, "
      "{name: third, op: dense, inputs: [one], units: 1}, "
      "{name: logit, op: sum, inputs: [first, third]}]"};
  const JobRun one = RunJob(folder, "one", shape);
  ExpectCompleted(one);
  EXPECT_LT(one.result.history.back().train.at(0).mean,
            one.result.history.front().train.at(0).mean);
  EXPECT_GT(one.result.valid->at(0).auc.value_or(0), 0.6);
  shape.workers = 2, shape.servers = 2;
  const JobRun two = RunJob(folder, "two", shape);
  ExpectCompleted(two);
  EXPECT_EQ(Checksums(two.result), Checksums(one.result));
  EXPECT_EQ(two.result.valid, one.result.valid);
  for (const char* match : {"*dispatch", "mix*"}) {
    shape.more = fmt::format("parallel: {{place: [{{match: \"{}\", device: gpu}}]}}\n", match);
    const JobRun placed = RunJob(folder, "placed", shape);
    ExpectCompleted(placed);
    EXPECT_EQ(Checksums(placed.result), Checksums(one.result)) << match;
  }
  const auto first_card = test::OpenCardOnHost(0), second_card = test::OpenCardOnHost(2);
  const JobRun card =
      RunJob(folder, "card", shape, {.accelerators = {first_card.get(), second_card.get()}});
  ExpectCompleted(card);
  EXPECT_NEAR(card.result.train.at(0).mean, one.result.train.at(0).mean, 2e-3);
}

// The switch `overlap: false` changes the order of events, and no bit of the result.
TEST(InProcessTest, OneThingAfterTheOtherGivesEqualParameters) {
  const test::TempFolder folder;
  const JobRun one = RunJob(folder, "overlap", {.servers = 2, .workers = 2, .slices = 4});
  ExpectCompleted(one);
  for (const char* place : {"", ", place: [{match: \"hidden*\", device: gpu}]"}) {
    const std::string more = fmt::format("parallel: {{overlap: false{}}}\n", place);
    const JobRun other =
        RunJob(folder, "apart", {.servers = 2, .workers = 2, .slices = 4, .more = more});
    ExpectCompleted(other);
    EXPECT_EQ(Checksums(other.result), Checksums(one.result)) << place;
    EXPECT_EQ(other.result.train, one.result.train) << place;
  }
  ExpectCompleted(RunJob(folder, "stale",
                         {.workers = 2, .staleness = "2", .more = "parallel: {overlap: false}\n"}));
}

// CUDA devices sum in another order than CPUs, so results are compared by bounds and not bit by
// bit. A checkpoint does not record placements. Each worker computes two slices on its device at
// once.
TEST(InProcessTest, CardsLearnWhatProcessorsDoAndAreLeftAndTakenUp) {
  const test::TempFolder folder;
  const JobShape cpu = {.workers = 2, .slices = 4, .epochs = 2};
  const JobRun one = RunJob(folder, "cpu", cpu);
  ExpectCompleted(one);
  const auto first_card = test::OpenCardOnHost(0), second_card = test::OpenCardOnHost(2);
  const RunOptions on_cards = {.accelerators = {first_card.get(), second_card.get()}};
  JobShape all = cpu;
  all.more = "parallel: {place: [{match: \"*\", device: gpu}]}\n";
  for (const bool begins_on_card : {true, false}) {
    const std::string name = begins_on_card ? "left" : "taken_up";
    JobShape first = begins_on_card ? all : cpu;
    first.epochs = 1;
    ExpectCompleted(RunJob(folder, name, first, begins_on_card ? on_cards : RunOptions()));
    RunOptions resume = begins_on_card ? RunOptions() : on_cards;
    resume.resume = "auto";
    const JobRun run = RunJob(folder, name, begins_on_card ? cpu : all, resume);
    ExpectCompleted(run);
    EXPECT_NEAR(run.result.train.at(0).mean, one.result.train.at(0).mean, 1e-3) << name;
    EXPECT_NEAR(run.result.valid->at(0).auc.value_or(0), one.result.valid->at(0).auc.value_or(1),
                2e-3)
        << name;
  }
}

TEST(InProcessTest, ATableOnACardLearnsWhatItDoesOnAServer) {
  const test::TempFolder folder;
  for (const auto& [workers, slices] : {std::pair{1u, 1u}, {1u, 3u}, {2u, 2u}}) {
    SCOPED_TRACE(fmt::format("{} workers, {} slices", workers, slices));
    const JobRun server = RunJob(folder, "server", {.slices = slices, .epochs = 1});
    ExpectCompleted(server);
    const auto card = test::OpenCardOnHost(4), other = test::OpenCardOnHost(4);
    JobShape shape = TablesOn("gpu", "gpu", 1);
    shape.workers = workers;
    shape.slices = slices;
    const JobRun run = RunJob(folder, "card", shape, {.accelerators = {card.get(), other.get()}});
    ExpectCompleted(run);
    EXPECT_NEAR(run.result.train.at(0).mean, server.result.train.at(0).mean, 1e-3);
    EXPECT_EQ(run.result.tables.at("deep").rows, server.result.tables.at("deep").rows);
  }
}

TEST(InProcessTest, TwoRunsAreEqualAndAnotherNumberOfSlicesIsNot) {
  const test::TempFolder folder;
  const JobRun first = RunJob(folder, "same", {});
  const JobRun second = RunJob(folder, "same", {});
  ExpectCompleted(first);
  ExpectCompleted(second);
  EXPECT_EQ(Checksums(first.result), Checksums(second.result));
  EXPECT_NE(Checksums(first.result), Checksums(RunJob(folder, "same", {.slices = 2}).result));
}

// ------------------------------------------------------------ schedules of the learning rate

// There are 12 steps in an epoch and 36 in all.
JobShape Scheduled(std::vector<std::string> set, uint32_t servers = 1, uint32_t workers = 1) {
  return {.servers = servers, .workers = workers, .slices = 2, .set = std::move(set)};
}

constexpr const char* kSchedules[] = {
    "optimizer.schedule={type: warmup, steps: 20}",
    "optimizer.schedule={type: cosine, steps: 36, warmup: 5, min_scale: 0.1}",
    "optimizer.schedule={type: step, every: 7, factor: 0.5}"};

// Checksums of a job that must have completed.
std::map<std::string, std::string> SumsOf(const JobRun& run) {
  ExpectCompleted(run);
  return Checksums(run.result);
}

TEST(InProcessTest, SchedulesGiveEqualParametersForAnyNumberOfProcesses) {
  const test::TempFolder folder;
  const auto plain = SumsOf(RunJob(folder, "plain", Scheduled({})));
  for (const char* schedule : kSchedules) {
    const auto one = SumsOf(RunJob(folder, "one", Scheduled({schedule})));
    EXPECT_NE(one, plain) << schedule;
    EXPECT_EQ(SumsOf(RunJob(folder, "w2", Scheduled({schedule}, 1, 2))), one) << schedule;
    EXPECT_EQ(SumsOf(RunJob(folder, "s2w2", Scheduled({schedule}, 2, 2))), one) << schedule;
  }
}

// max_steps ends the first run in the middle of the second epoch.
TEST(InProcessTest, AScheduledJobResumedInTheMiddleOfAnEpochEqualsUninterrupted) {
  const test::TempFolder folder;
  for (const char* schedule : kSchedules) {
    const auto whole = SumsOf(RunJob(folder, "whole", Scheduled({schedule})));
    const JobRun first = RunJob(folder, "parts", Scheduled({schedule, "train.max_steps=17"}));
    ExpectCompleted(first);
    EXPECT_EQ(first.result.steps, 17u);
    EXPECT_EQ(first.result.history.back().step, 17u);
    const JobRun second =
        RunJob(folder, "parts", Scheduled({schedule, "train.max_steps=1000"}), {.resume = "auto"});
    EXPECT_EQ(SumsOf(second), whole) << schedule;
    EXPECT_EQ(second.result.steps, 36u);
  }
}

// In the first of four warm-up steps the rate is a quarter everywhere except in a table with
// `schedule: none`.
TEST(InProcessTest, AScheduleScalesDenseParametersAndTablesThatDoNotOptOut) {
  const test::TempFolder folder;
  const auto run = [&](const char* name, std::vector<std::string> set) {
    set.insert(set.end(), {"train.max_steps=1", "model.tables.wide.optimizer.schedule=none",
                           "optimizer.name=sgd", "model.tables.deep.optimizer.name=sgd"});
    return SumsOf(RunJob(folder, name, Scheduled(std::move(set))));
  };
  const auto scheduled =
      run("scheduled", {"optimizer.schedule={type: warmup, steps: 4}", "optimizer.lr=0.5",
                        "model.tables.deep.optimizer.lr=0.25"});
  const auto slow = run("slow", {"optimizer.lr=0.125", "model.tables.deep.optimizer.lr=0.0625"});
  EXPECT_EQ(scheduled, slow);
}

TEST(InProcessTest, WorkersApartFollowTheScheduleToo) {
  const test::TempFolder folder;
  for (const char* staleness : {"2", "unbounded"}) {
    JobShape shape =
        Scheduled({"optimizer.schedule={type: cosine, warmup: 5}", "train.max_steps=30"}, 1, 2);
    shape.slices = 1;
    shape.staleness = staleness;
    const JobRun run = RunJob(folder, "apart", shape);
    ExpectCompleted(run);
    EXPECT_EQ(run.result.steps, 30u);
    EXPECT_LT(run.result.history.back().rate_scale, 0.01f);
  }
}

}  // namespace
}  // namespace dt
