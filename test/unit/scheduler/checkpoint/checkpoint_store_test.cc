#include "scheduler/checkpoint/checkpoint_store.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/base/hash.h"
#include "common/schema/output_schema.h"
#include "test/support/schema_check.h"

namespace dt::scheduler {
namespace {

namespace fs = std::filesystem;

class CheckpointStoreTest : public ::testing::Test {
 public:
  CheckpointStoreTest()
      : dir_(fs::path(::testing::TempDir()) /
             ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(dir_);
  }
  ~CheckpointStoreTest() override { fs::remove_all(dir_); }

 protected:
  CheckpointStore Open(std::optional<Step> resumed = {}, uint32_t keep = 2) {
    return *CheckpointStore::Open({dir_.string(), keep, resumed, {}});
  }
  static void WriteFile(const fs::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  // Makes a complete checkpoint with one file.
  Result<std::string> Make(CheckpointStore& store, Step step, bool best = false) {
    return MakeOf(store, step, best, "rows of step " + std::to_string(step));
  }
  static Result<std::string> MakeOf(CheckpointStore& store, Step step, bool best,
                                    const std::string& content) {
    const Result<std::string> folder = store.Begin(step);
    EXPECT_TRUE(folder.ok()) << folder.status();
    WriteFile(fs::path(*folder) / "dense.bin", content);
    Manifest manifest = ManifestAt(step);
    manifest.files = {{"dense.bin", content.size(), HashString(content)}};
    manifest.order = content;
    return store.Commit(manifest, best);
  }
  static Manifest ManifestAt(Step step) {
    Manifest manifest;
    manifest.job = "j";
    manifest.schedule.step = step;
    manifest.schedule.decisions.best =
        LossMetrics{{0.75, 0.5, std::nullopt, 10, true, std::nullopt, "click"},
                    {.logloss = 1.5, .accuracy = 0.5, .loss = "next"}};
    manifest.schedule.decisions.best_step = step;
    const LossMeans train = {{"click", 0.1}, {"next", 2.5}};
    manifest.schedule.history = {{1, step, 0.5f, 0.01, *manifest.schedule.decisions.best, train}};
    manifest.schedule.epoch_loss_sums = {10, 250};
    manifest.schedule.epoch_samples = 100;
    manifest.schedule.first_losses = {0.7, 3};
    manifest.schedule.curve = {{step, 1.5, 100, 0.01, train, 2}};
    manifest.resume_text = "batch_size: 10\njob: j\nseed: 1";
    manifest.resume_fingerprint = 0xfedcba9876543210;
    return manifest;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  using Strings = std::vector<std::string>;

  const fs::path dir_;
};

TEST_F(CheckpointStoreTest, ManifestIsAsItsSchemaSays) {
  const test::SchemaCheck schema(OutputSchemaJson("manifest"));
  Manifest manifest = ManifestAt(1000);
  manifest.files = {{"dense.bin", 1, 2}};
  manifest.schedule.evaluated = 900;
  for (const Manifest& one : {manifest, Manifest()}) {
    EXPECT_EQ(schema.ProblemsOf(nlohmann::json::parse(ManifestToJson(one))),
              std::vector<std::string>{});
  }
}

TEST_F(CheckpointStoreTest, ManifestComesBackAsItWas) {
  CheckpointStore store = Open();
  const std::string folder = *Make(store, 1000);
  const Result<Manifest> back = ReadManifest(folder);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ManifestToJson(*back), ManifestToJson([&] {
              Manifest m = ManifestAt(1000);
              m.files = back->files, m.order = back->order;
              return m;
            }()));
  EXPECT_EQ(back->schedule.decisions, ManifestAt(1000).schedule.decisions);
  EXPECT_EQ(back->schedule.history[0].train, ManifestAt(1000).schedule.history[0].train);
  EXPECT_EQ(back->schedule.curve[0].losses, ManifestAt(1000).schedule.curve[0].losses);
  EXPECT_EQ(back->schedule.curve[0].pieces, 2u);
  EXPECT_EQ(back->resume_fingerprint, 0xfedcba9876543210);
  EXPECT_EQ(fs::path(folder).filename(), "step-000000001000");
  EXPECT_TRUE(VerifyCheckpoint(folder).ok());
}

TEST_F(CheckpointStoreTest, KeepsTheNewestAndTheBest) {
  CheckpointStore store = Open();
  ASSERT_TRUE(Make(store, 1, true).ok());
  for (Step step = 2; step <= 5; ++step) ASSERT_TRUE(Make(store, step).ok());
  EXPECT_EQ(Names(),
            (Strings{"best", "step-000000000001", "step-000000000004", "step-000000000005"}));
  ASSERT_TRUE(Make(store, 6, true).ok());
  EXPECT_EQ(Names(),
            (Strings{"best", "step-000000000004", "step-000000000005", "step-000000000006"}));
  const auto all = ListCheckpoints(dir_.string());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[2].best);
  EXPECT_FALSE(all[0].best);
}

TEST_F(CheckpointStoreTest, OlderOnesGoWithTheFirstCompleteOne) {
  {
    CheckpointStore store = Open();
    ASSERT_TRUE(Make(store, 7, true).ok());
    ASSERT_TRUE(Make(store, 9).ok());
    ASSERT_TRUE(store.Begin(11).ok());
  }
  CheckpointStore again = Open();
  EXPECT_EQ(Names(), (Strings{"best", "step-000000000007", "step-000000000009"}))
      << "what was not complete is swept away";
  ASSERT_TRUE(Make(again, 3).ok());
  EXPECT_EQ(Names(), Strings{"step-000000000003"});
}

TEST_F(CheckpointStoreTest, ResumedJobKeepsWhatLedToIt) {
  {
    CheckpointStore store = Open({}, 9);
    for (Step step : {2, 4, 6}) ASSERT_TRUE(Make(store, step).ok());
  }
  CheckpointStore resumed = Open(4, 9);
  ASSERT_TRUE(Make(resumed, 5).ok());
  EXPECT_EQ(Names(), (Strings{"step-000000000002", "step-000000000004", "step-000000000005"}));
}

// Also after a crash between the rename and the link, which then still names the previous best.
TEST_F(CheckpointStoreTest, ResumedJobKeepsItsBest) {
  {
    CheckpointStore store = Open({}, 9);
    ASSERT_TRUE(Make(store, 2, true).ok());
    ASSERT_TRUE(Make(store, 4).ok());
    ASSERT_TRUE(Make(store, 6).ok());
  }
  Manifest at6 = ManifestAt(6);
  at6.schedule.decisions.best_step = 4;
  const std::string folder = (dir_ / "step-000000000006").string();
  const auto best = BestOfResumed(folder, at6);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ((*best)->folder, (dir_ / "step-000000000004").string());
  CheckpointStore resumed = *CheckpointStore::Open({dir_.string(), 1, 6, *best});
  for (Step step : {8, 9}) ASSERT_TRUE(Make(resumed, step).ok());
  EXPECT_EQ(Names(), (Strings{"best", "step-000000000004", "step-000000000009"}));
  EXPECT_EQ(fs::read_symlink(dir_ / "best"), "step-000000000004");
  // In a store with another folder, the best checkpoint stays where it is.
  const std::string elsewhere = (dir_ / "other").string();
  CheckpointStore moved = *CheckpointStore::Open({elsewhere, 1, 6, *best});
  EXPECT_EQ(*moved.Find(4), (*best)->folder);
  EXPECT_TRUE(fs::equivalent(fs::path(elsewhere) / "best", (*best)->folder));

  fs::remove_all((*best)->folder);
  const Status gone = BestOfResumed(folder, at6).status();
  EXPECT_EQ(gone.code(), StatusCode::kNotFound);
  EXPECT_NE(ToText(gone).find("of step 4"), std::string::npos) << ToText(gone);
  at6.schedule.decisions.best_step = 6;
  EXPECT_EQ((*BestOfResumed(folder, at6))->folder, folder);
}

TEST_F(CheckpointStoreTest, TheSameStepAgainTakesThePlace) {
  CheckpointStore store = Open();
  ASSERT_TRUE(Make(store, 4).ok());
  WriteFile(dir_ / "step-000000000004" / "old", "of the first");
  ASSERT_TRUE(MakeOf(store, 4, true, "other rows").ok());
  EXPECT_EQ(Names(), (Strings{"best", "step-000000000004"}));
  EXPECT_FALSE(fs::exists(dir_ / "step-000000000004" / "old"));
  EXPECT_TRUE(VerifyCheckpoint((dir_ / "best").string()).ok());
}

// Between any two steps of the first scheduler's Commit: the second one does it all again. Servers
// that came back in between have begun to write their rows again.
TEST_F(CheckpointStoreTest, AnotherSchedulerOfTheRunCommitsAgain) {
  CheckpointStore first = Open();
  ASSERT_TRUE(Make(first, 2, true).ok());
  Manifest manifest = ManifestAt(4);
  manifest.files = {{"dense.bin", 4, HashString("rows")}};
  manifest.order = "run-9";
  for (const bool committed : {false, true}) {
    WriteFile(fs::path(*first.Begin(4)) / (committed ? "rows-1" : "dense.bin"), "rows");
    CheckpointStore second = *CheckpointStore::Open(
        {.dir = dir_.string(), .keep = 5, .resumed = 2, .best = {}, .continues = true});
    EXPECT_EQ(*second.Find(2), (dir_ / "step-000000000002").string()) << "the best so far";
    const Result<std::string> folder = second.Commit(manifest, false);
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_TRUE(VerifyCheckpoint(*folder).ok());
    manifest.files.push_back({"rows-1", 4, HashString("rows")});
    EXPECT_EQ(Names(), (Strings{"best", "step-000000000002", "step-000000000004"}));
  }
}

TEST_F(CheckpointStoreTest, ARemovalThatWasCutShortIsFinished) {
  fs::create_directories(dir_ / ".removing-step-000000000004");
  WriteFile(dir_ / ".removing-step-000000000004" / "dense.bin", "half");
  EXPECT_TRUE(ListCheckpoints(dir_.string()).empty());
  Open();
  EXPECT_TRUE(Names().empty());
}

TEST_F(CheckpointStoreTest, UncommittedIsNotThere) {
  CheckpointStore store = Open();
  ASSERT_TRUE(store.Begin(5).ok());
  EXPECT_TRUE(ListCheckpoints(dir_.string()).empty());
  EXPECT_EQ(*NewestCheckpoint(dir_.string()), std::nullopt);
  EXPECT_EQ(store.Find(5).status().code(), StatusCode::kNotFound);
  Manifest manifest = ManifestAt(5);
  manifest.files = {{"absent.bin", 3, 1}};
  EXPECT_EQ(store.Commit(manifest, false).status().code(), StatusCode::kDataLoss);
  manifest.files = {{"../outside", 3, 1}};
  EXPECT_FALSE(store.Commit(manifest, false).ok());
  EXPECT_TRUE(ListCheckpoints(dir_.string()).empty());
}

TEST_F(CheckpointStoreTest, AFolderWithoutAManifestIsNoneOfOurs) {
  std::string own;
  {
    CheckpointStore store = Open();
    own = *Make(store, 3);
  }
  fs::create_directory(dir_ / "step-000000000009");
  WriteFile(dir_ / "step-000000000009" / "kept.txt", "somebody's");
  const auto newest = NewestCheckpoint(dir_.string());
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(*newest, own);
  CheckpointStore again = Open(Step{3});
  ASSERT_TRUE(Make(again, 4).ok());
  EXPECT_EQ(Names(), (Strings{"step-000000000003", "step-000000000004", "step-000000000009"}));
}

TEST_F(CheckpointStoreTest, OtherAccountsAreShutOut) {
  CheckpointStore store = Open();
  const std::string folder = *Make(store, 1);
  for (const fs::path& path : {dir_, fs::path(folder)}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all) << path;
  }
}

TEST_F(CheckpointStoreTest, DamageIsNamedAndThePreviousOffered) {
  CheckpointStore store = Open();
  const std::string first = *Make(store, 1), second = *Make(store, 2);
  EXPECT_EQ(*NewestCheckpoint(dir_.string()), second);
  const fs::path file = fs::path(second) / "dense.bin";
  WriteFile(file, "rows of step X");
  for (const Status& status :
       {VerifyCheckpoint(second), NewestCheckpoint(dir_.string()).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kDataLoss);
    EXPECT_EQ(ProblemOf(status).where, file.string());
    EXPECT_NE(ProblemOf(status).hint.find(first), std::string::npos) << ToText(status);
  }
  WriteFile(file, "short");
  EXPECT_EQ(VerifyCheckpoint(second).code(), StatusCode::kDataLoss);
  fs::remove(file);
  EXPECT_EQ(VerifyCheckpoint(second).code(), StatusCode::kDataLoss);
}

TEST_F(CheckpointStoreTest, AnyDamageOfTheManifestIsNoticed) {
  CheckpointStore store = Open();
  const std::string folder = *Make(store, 1);
  const fs::path path = fs::path(folder) / "manifest.json";
  const std::string good = ManifestToJson(*ReadManifest(folder));
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = bad[i] == '1' ? '2' : '1';
    const Result<Manifest> result = ManifestFromJson(bad, path.string());
    EXPECT_TRUE(!result.ok() || ManifestToJson(*result) == good) << "byte " << i;
  }
  EXPECT_FALSE(ManifestFromJson(good.substr(0, good.size() / 2), "x").ok());
  for (const std::string& odd : {std::string("[]"), std::string("{}"),
                                 std::string(R"({"format": {}})"), std::string(1'000'000, '[')}) {
    EXPECT_EQ(ManifestFromJson(odd, "x").status().code(), StatusCode::kDataLoss)
        << odd.substr(0, 9);
  }
}

}  // namespace
}  // namespace dt::scheduler
