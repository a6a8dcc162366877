// Every shipped job file loads.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "common/config/load_job.h"

namespace dt {
namespace {

std::filesystem::path ConfigsDir() {
  const char* source = std::getenv("DT_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "configs";
}

std::vector<std::string> ShippedJobs() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(ConfigsDir())) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(Configs, EveryJobLoadsUnderItsOwnName) {
  const std::vector<std::string> files = ShippedJobs();
  EXPECT_GE(files.size(), 18u);
  for (const std::string& file : files) {
    const Result<JobConfig> job = LoadJob(file, {});
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->job, std::filesystem::path(file).stem().string());
    EXPECT_FALSE(job->model.tables.empty()) << file;
  }
}

TEST(Configs, EveryTemplateIsUsed) {
  std::vector<std::string> used;
  for (const std::string& file : ShippedJobs()) {
    const Result<JobConfig> job = LoadJob(file, {});
    ASSERT_TRUE(job.ok()) << job.status();
    used.push_back(std::filesystem::path(job->model.nodes.at(0).mark.file).filename().string());
  }
  for (const auto& entry : std::filesystem::directory_iterator(ConfigsDir() / "models")) {
    const std::string name = entry.path().filename().string();
    EXPECT_NE(std::find(used.begin(), used.end(), name), used.end()) << name;
  }
}

TEST(Configs, ThePublishedRecipe) {
  const Result<JobConfig> job = LoadJob((ConfigsDir() / "frappe_deepfm.yaml").string(), {});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->train.batch_size, 4096u);
  EXPECT_EQ(job->model.tables.at(0).optimizer.kind, OptimizerKind::kLazyAdam);
  EXPECT_EQ(job->model.tables.at(0).optimizer.l2_scope, L2Scope::kGap);
  EXPECT_EQ(job->optimizer.clip_norm, 10.0f);
  EXPECT_EQ(job->train.early_stop->patience, 2u);
  ASSERT_EQ(job->data.columns.size(), 2u);
  EXPECT_EQ(job->data.columns[1].length, 10u);
}

}  // namespace
}  // namespace dt
