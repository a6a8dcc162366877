// Goal: evaluations beside a job do not disturb it; a full disk ends it with a sentence, and
// nothing is lost. Method: the real program with so little memory that most rows are on disk.
#include <filesystem>
#include <sys/mount.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr uint32_t kIds = 12'000;

// Samples of three columns of ids each, most of them seen only now and then.
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
train: {batch_size: 250, epochs: 4}
cluster: {servers: 2, workers: 1, shards: 16, server: {memory: 2MiB, executors: 2}}
checkpoint: {every: 12, keep: 100}
)");
  }
  // Of a complete checkpoint; "" while there is none.
  std::string Checkpoint() const {
    const std::string all = folder_.path() + "/runs/rows/checkpoints";
    std::error_code absent;
    for (const auto& entry : std::filesystem::directory_iterator(all, absent)) {
      if (entry.path().filename().string().starts_with("step-")) return entry.path().string();
    }
    return "";
  }

  TempFolder folder_;
  std::string job_;
};

TEST_F(Storage, EvaluationsBesideATrainingDisturbNothing) {
  const ProgramEnd calm =
      RunProgram(folder_.path(), {"train", job_, "--set", "job=calm", "--result", "calm.json"});
  ASSERT_EQ(calm.exit_code, 0) << calm.output;
  EXPECT_GT(NumberAt(folder_, "calm.json", "/tables/t/rows_on_disk"), 1000);
  for (const std::string command : {"train", "launch"}) {
    Program job(folder_.path(), {command, job_, "--result", command + ".json"});
    ASSERT_TRUE(Eventually(seconds(30), [&] { return !Checkpoint().empty(); })) << job.Output();
    for (int i = 0; i < 3; ++i) {
      const std::vector<std::string> eval = {"eval", job_, "--checkpoint", Checkpoint()};
      Program one(folder_.path(), eval), two(folder_.path(), eval);
      for (Program* program : {&one, &two}) {
        const ProgramEnd end = program->Wait(seconds(60));
        EXPECT_EQ(end.exit_code, 0) << end.output;
      }
    }
    const ProgramEnd end = job.Wait(seconds(120));
    ASSERT_EQ(end.exit_code, 0) << end.output;
    EXPECT_EQ(ChecksumOf(folder_, command + ".json"), ChecksumOf(folder_, "calm.json"));
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/runs/rows")) {
      EXPECT_FALSE(entry.is_directory() && entry.path().filename().string().starts_with("rows-"))
          << entry.path();
    }
    std::filesystem::remove_all(folder_.path() + "/runs/rows");
  }
}

// A file system of a few megabytes, as the folder that a job runs in; only root can have one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    std::filesystem::create_directories(path);
    made_ = mount("tmpfs", path.c_str(), "tmpfs", 0, "size=24m") == 0;
  }
  ~SmallDisk() {
    if (made_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool made() const { return made_; }
  void Grow() const {
    ASSERT_EQ(mount("tmpfs", path_.c_str(), "tmpfs", MS_REMOUNT, "size=512m"), 0);
  }

 private:
  const std::string path_;
  bool made_ = false;
};

// Every checkpoint is kept, so that the disk is full after some.
TEST_F(Storage, AFullDiskEndsTheJobWithASentenceAndWithRoomItGoesOn) {
  const SmallDisk disk(folder_.path() + "/runs");
  if (!disk.made()) GTEST_SKIP() << "only root may mount a small file system";
  const ProgramEnd calm =
      RunProgram(folder_.path(), {"train", job_, "--set", "cluster.server.dir=calm", "--set",
                                  "checkpoint.dir=calm/checkpoints", "--result", "calm.json"});
  ASSERT_EQ(calm.exit_code, 0) << calm.output;
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
  disk.Grow();
  for (const std::string command : {"train", "launch"}) {
    const std::string result = command + ".json";
    const ProgramEnd more = RunProgram(folder_.path(), {command, job_, "--set", "job=" + command,
                                                        "--resume", "auto", "--result", result});
    EXPECT_EQ(more.exit_code, 0) << more.output;
    EXPECT_EQ(ChecksumOf(folder_, result), ChecksumOf(folder_, "calm.json"));
  }
}

}  // namespace
}  // namespace dt::test
