#include "test/unit/common/config/temp_job.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "common/base/check.h"

namespace dt {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "dt_config_XXXXXX").string();
  DT_CHECK(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

TempDir::~TempDir() { std::filesystem::remove_all(path_); }

std::string TempDir::Write(std::string_view name, std::string_view text) const {
  const std::filesystem::path file = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const size_t at = out.find(from);
  EXPECT_NE(at, std::string::npos) << "not in the text: " << from;
  if (at == std::string::npos) return out;
  EXPECT_EQ(out.find(from, at + 1), std::string::npos) << "twice in the text: " << from;
  return out.replace(at, from.size(), to);
}

std::string ProblemsOf(std::string_view text, const LoadOptions& options) {
  const TempDir dir;
  const Result<JobConfig> job = LoadJob(dir.Write("job.yaml", text), options);
  if (job.ok()) return "";
  std::string message(MessageOf(job.status()));
  const std::string prefix = dir.path() + "/";
  for (size_t at; (at = message.find(prefix)) != std::string::npos;) {
    message.erase(at, prefix.size());
  }
  return message;
}

std::string ProblemsAfter(std::string_view from, std::string_view to) {
  return ProblemsOf(Replaced(kGoodJob, from, to));
}

JobConfig Loaded(std::string_view text, const LoadOptions& options) {
  const TempDir dir;
  Result<JobConfig> job = LoadJob(dir.Write("job.yaml", text), options);
  DT_CHECK_MSG(job.ok(), "{}", MessageOf(job.status()));
  return *std::move(job);
}

}  // namespace dt
