// Goal: a model is used with the constants of columns that it was trained with. Method: the real
// program on a small job with columns of every kind, whose statistics disappear and change.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/philox.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kVisits = R"(job: visits
seed: 5
data:
  format: csv
  train: [train.csv]
  stats: stats.json
  columns:
    - {name: click, role: label}
    - {name: price, clip: [0, 90], transform: log, standardise: true}
    - {name: band, from: price, type: id, quantiles: 5}
    - {name: half, from: price, type: id, edges: [50], hash: 4}
    - {name: hour, from: time, type: id, transform: hour}
    - {name: weekday, from: time, type: id, transform: weekday}
    - {name: user, type: string, hash: 50}
    - {name: tags, type: ids, weights: scores, hash: 30}
model:
  tables:
    band: {dim: 2}
    half: {dim: 2, rows: 4}
    hour: {dim: 2, rows: 24}
    weekday: {dim: 2, rows: 7}
    user: {dim: 4, rows: 50}
    tags: {dim: 4, rows: 30}
  graph:
    - {name: b, op: lookup, table: band, inputs: [band]}
    - {name: a, op: lookup, table: half, inputs: [half]}
    - {name: h, op: lookup, table: hour, inputs: [hour]}
    - {name: w, op: lookup, table: weekday, inputs: [weekday]}
    - {name: u, op: lookup, table: user, inputs: [user]}
    - {name: t, op: bag, table: tags, inputs: [tags]}
    - {name: deep, op: mlp, inputs: [a, b, h, w, u, t, price], units: [8, 1]}
  loss: [{type: binary_cross_entropy, input: deep, label: click}]
optimizer: {name: adam, lr: 0.01}
train: {batch_size: 64, epochs: 2}
)";

std::string Visits(uint64_t seed, uint32_t rows) {
  std::string text = "click,price,time,user,tags,scores\n";
  for (uint32_t row = 0; row < rows; ++row) {
    const PhiloxBlock draws = Philox(seed, row, 0);
    const uint32_t price = draws[0] % 100, hour = draws[1] % 24;
    text += fmt::format(
        "{},{},2024-05-{:02} {:02}:00:00,u{},{}|{},{}|0.5\n", (price + 4 * hour) % 7 < 3 ? 1 : 0,
        row % 9 == 0 ? "" : fmt::to_string(price), 1 + draws[2] % 28, hour, draws[3] % 80,
        draws[2] % 100, draws[3] % 100, static_cast<double>(draws[0] % 4) / 2);
  }
  return text;
}

class ConstantsTest : public ::testing::Test {
 protected:
  ConstantsTest() {
    job_ = folder_.Write("visits.yaml", kVisits);
    folder_.Write("train.csv", Visits(1, 1500));
    folder_.Write("new.csv", Visits(2, 200));
  }

  void Train() {
    const ProgramEnd stats = RunProgram(folder_.path(), {"data", "stats", job_, "--json"});
    ASSERT_EQ(stats.exit_code, 0) << stats.output;
    stats_ = nlohmann::json::parse(stats.output, nullptr, false);
    folder_.Write("stats.json", stats.output);
    const ProgramEnd train = RunProgram(folder_.path(), {"train", job_});
    ASSERT_EQ(train.exit_code, 0) << train.output;
    checkpoint_ = CheckpointsOf(folder_, "visits").back();
  }
  std::string Predicted() const {
    const ProgramEnd end = RunProgram(folder_.path(), {"predict", job_, "--checkpoint", checkpoint_,
                                                       "--data", "new.csv", "--out", "scores.csv"});
    EXPECT_EQ(end.exit_code, 0) << end.output;
    return folder_.Read("scores.csv");
  }

  const TempFolder folder_;
  std::string job_, checkpoint_;
  nlohmann::json stats_;
};

TEST_F(ConstantsTest, AreThoseOfTheCheckpointWhereverItIsUsed) {
  ASSERT_NO_FATAL_FAILURE(Train());
  const std::string expected = Predicted();
  ASSERT_EQ(std::count(expected.begin(), expected.end(), '\n'), 201);
  std::filesystem::remove(folder_.path() + "/stats.json");
  EXPECT_EQ(Predicted(), expected) << "without the file";
  for (nlohmann::json& column : stats_["train"]["columns"]) {
    if (column["name"] != "price") continue;
    column["mean"] = column["mean"].get<double>() + 1;
  }
  folder_.Write("stats.json", stats_.dump());
  EXPECT_EQ(Predicted(), expected) << "the file has changed";
  const ProgramEnd resumed = RunProgram(folder_.path(), {"train", job_, "--resume", "auto"});
  EXPECT_EQ(resumed.exit_code, 2) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("data.columns.price.constants: mean "));
  const ProgramEnd other =
      RunProgram(folder_.path(), {"eval", job_, "--checkpoint", checkpoint_, "--set",
                                  "data.test=[new.csv]", "--set", "data.columns.user.hash=40"});
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_THAT(other.output, HasSubstr("data.columns.user.hash: 50 there, 40 here"));
}

TEST_F(ConstantsTest, TrainingNeedsTheFile) {
  const ProgramEnd end = RunProgram(folder_.path(), {"train", job_});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.output, HasSubstr("stats.json"));
}

}  // namespace
}  // namespace dt::test
