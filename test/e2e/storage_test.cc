// Goal: evaluations that run beside a job do not disturb it; a full disk ends a job with a
// sentence, and no data is lost. Method: the real program with so little memory that most rows are
// on disk.
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "test/support/full_disk.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr uint32_t kIds = 12'000;

// Samples of three id columns; most ids are rare.
std::string Samples(uint64_t seed, uint32_t count) {
  std::string text = "click,a,b,c\n";
  for (uint32_t i = 0; i < count; ++i) {
    const PhiloxBlock random = Philox(seed, i, 0);
    text += fmt::format("{},{},{},{}\n", random[3] % 2, random[0] % kIds, kIds + random[1] % kIds,
                        2 * kIds + random[2] % kIds);
  }
  return text;
}

class Storage : public ::testing::Test {
 protected:
  Storage() {
    folder_.Write("train.csv", Samples(1, 6000));
    folder_.Write("test.csv", Samples(2, 500));
    job_ = folder_.Write("rows.yaml", R"(job: rows
seed: 5
data:
  format: csv
  train: [train.csv]
  test: [test.csv]
  columns:
    - {name: click, role: label}
    - {name: a, type: id}
    - {name: b, type: id}
    - {name: c, type: id}
model:
  tables: {t: {dim: 32, device: ps, optimizer: {name: adam, lr: 0.01}}}
  graph:
    - {name: e, op: lookup, table: t, inputs: [a, b, c]}
    - {name: h, op: mlp, inputs: [e], units: [8]}
    - {name: logit, op: dense, inputs: [h], units: 1}
  loss: [{type: binary_cross_entropy, input: logit, label: click}]
optimizer: {name: adam, lr: 0.01}
train: {batch_size: 250, epochs: 3}
cluster: {servers: 2, workers: 1, shards: 16, server: {memory: 2MiB, executors: 2}}
checkpoint: {every: 12, keep: 100}
)");
  }
  // The same job, run while nothing else uses its files.
  std::vector<std::string> Calm() const {
    return {"train", job_, "--set", "job=calm", "--result", "calm.json"};
  }

  TempFolder folder_;
  std::string job_;
};

TEST_F(Storage, EvaluationsBesideATrainingDisturbNothing) {
  Program calm(folder_.path(), Calm());
  for (const std::string command : {"train", "launch"}) {
    Program job(folder_.path(), {command, job_, "--result", command + ".json"});
    ASSERT_TRUE(Eventually(seconds(30), [&] { return !CheckpointsOf(folder_, "rows").empty(); }))
        << job.Output();
    const std::string checkpoint = CheckpointsOf(folder_, "rows").front();
    for (int i = 0; i < 3; ++i) {
      const std::vector<std::string> eval = {"eval", job_, "--checkpoint", checkpoint};
      Program one(folder_.path(), eval), two(folder_.path(), eval);
      for (Program* program : {&one, &two}) {
        const ProgramEnd end = program->Wait(seconds(60));
        EXPECT_EQ(end.exit_code, 0) << end.output;
      }
    }
    const ProgramEnd end = job.Wait(seconds(120));
    ASSERT_EQ(end.exit_code, 0) << end.output;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/runs/rows")) {
      EXPECT_FALSE(entry.is_directory() && entry.path().filename().string().starts_with("rows-"))
          << entry.path();
    }
    std::filesystem::remove_all(folder_.path() + "/runs/rows");
  }
  const ProgramEnd end = calm.Wait(seconds(60));
  ASSERT_EQ(end.exit_code, 0) << end.output;
  EXPECT_GT(NumberAt(folder_, "calm.json", "/tables/t/rows_on_disk"), 1000);
  EXPECT_NE(end.output.find("server.rows_to_disk"), std::string::npos) << end.output;
  EXPECT_EQ(ChecksumOf(folder_, "train.json"), ChecksumOf(folder_, "calm.json"));
  EXPECT_EQ(ChecksumOf(folder_, "launch.json"), ChecksumOf(folder_, "calm.json"));
}

// Every checkpoint is kept, so the disk becomes full.
TEST_F(Storage, AFullDiskEndsTheJobWithASentenceAndWithRoomItGoesOn) {
  const SmallDisk disk(24 << 20);
  if (!disk.made()) GTEST_SKIP() << "only root may mount a small file system";
  std::filesystem::create_directory_symlink(disk.path(), folder_.path() + "/runs");
  for (const std::string command : {"train", "launch"}) {
    const std::string result = command + ".json";
    const ProgramEnd full =
        RunProgram(folder_.path(), {command, job_, "--set", "job=" + command, "--result", result});
    EXPECT_EQ(full.exit_code, 1) << full.output;
    EXPECT_THAT(full.output, HasSubstr("runs/" + command));
    EXPECT_THAT(full.output, ::testing::AnyOf(HasSubstr("the disk is full"),
                                              HasSubstr("No space left on device")));
    EXPECT_EQ(TextAt(folder_, result, "/status"), "failed");
  }
  disk.Grow(512 << 20);
  Program calm(folder_.path(), Calm());
  Program train(folder_.path(), {"train", job_, "--set", "job=train", "--resume", "auto",
                                 "--result", "train.json"});
  Program launch(folder_.path(), {"launch", job_, "--set", "job=launch", "--resume", "auto",
                                  "--result", "launch.json"});
  for (Program* program : {&calm, &train, &launch}) {
    const ProgramEnd end = program->Wait(seconds(60));
    ASSERT_EQ(end.exit_code, 0) << end.output;
  }
  EXPECT_EQ(ChecksumOf(folder_, "train.json"), ChecksumOf(folder_, "calm.json"));
  EXPECT_EQ(ChecksumOf(folder_, "launch.json"), ChecksumOf(folder_, "calm.json"));
}

}  // namespace
}  // namespace dt::test
