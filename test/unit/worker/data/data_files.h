// Files and data sets for the tests of worker/data.
#pragma once

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "worker/data/dataset.h"

namespace dt::worker {

// A directory of this test, removed at its end.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dt_data_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, std::string_view text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string path_;
};

// The job's data section for one training file that contains `text`.
inline DataConfig ConfigFor(const TempDir& dir, DataFormat format, std::string_view text) {
  DataConfig config;
  config.format = format;
  config.train = {dir.Write("train.txt", text)};
  config.cache_dir = dir.path("cache");
  return config;
}

inline Batch AllOf(const Dataset& data) {
  std::vector<uint64_t> rows(data.rows());
  std::iota(rows.begin(), rows.end(), uint64_t{0});
  Batch batch;
  EXPECT_TRUE(data.Gather(rows, batch).ok());
  return batch;
}

inline ColumnSpec Column(std::string name, ColumnType type,
                         ColumnRole role = ColumnRole::kFeature) {
  ColumnSpec column;
  column.name = std::move(name);
  column.type = type;
  column.role = role;
  return column;
}

// The error message of opening the split, without the test's directory.
inline std::string OpenError(const TempDir& dir, const DataConfig& config,
                             Split split = Split::kTrain) {
  TaskPool pool(2);
  const auto data = Dataset::Open(config, split, pool);
  if (data.ok()) return "no error";
  std::string text(MessageOf(data.status()));
  const std::string prefix = dir.path("");
  for (size_t at = text.find(prefix); at != text.npos; at = text.find(prefix)) {
    text.erase(at, prefix.size());
  }
  return text;
}

}  // namespace dt::worker
