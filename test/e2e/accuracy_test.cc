// Goal: the shipped models reach their quality gates on real data (docs/accuracy.md). Method:
// configs/frappe_*.yaml through `launch` on 2 servers and 2 workers. The data is not part of the
// project: it is read from $DOVETAIL_DATA or ../shared/data; without it the tests are skipped.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

struct Gate {
  const char* model;
  double auc_min, auc_max;  // Bounds for the validation data at the best epoch.
  double logloss_max;
};

const Gate kGates[] = {
    {"lr", 0.9367, 0.9387, 1.0},      {"fm", 0.967, 1.0, 1.0},       {"dnn", 0.983, 1.0, 0.160},
    {"wide_deep", 0.982, 1.0, 0.160}, {"deepfm", 0.983, 1.0, 0.160}, {"dcn", 0.983, 1.0, 0.160},
    {"dcn_v2", 0.983, 1.0, 0.160},    {"dlrm", 0.983, 1.0, 0.160},
};

std::string DataFolder() {
  if (const char* given = std::getenv("DOVETAIL_DATA")) return given;
  return std::string(std::getenv("DT_SOURCE_DIR")) + "/../shared/data";
}

void ExpectGate(const Gate& gate, int seed, const std::vector<std::string>& more) {
  if (!std::filesystem::exists(DataFolder() + "/frappe/train.libsvm")) {
    GTEST_SKIP() << "no Frappe data in " << DataFolder() << " (set DOVETAIL_DATA)";
  }
  setenv("DOVETAIL_DATA", std::filesystem::absolute(DataFolder()).c_str(), 1);
  TempFolder folder;
  const std::string job =
      std::string(std::getenv("DT_SOURCE_DIR")) + "/configs/frappe_" + gate.model + ".yaml";
  std::vector<std::string> arguments = {"launch",   job,
                                        "--set",    "cluster.servers=2",
                                        "--set",    "cluster.workers=2",
                                        "--set",    "seed=" + std::to_string(seed),
                                        "--result", "r.json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProgramEnd end = RunProgram(folder.path(), arguments, std::chrono::minutes(15));
  ASSERT_EQ(end.exit_code, 0) << end.output;
  const double auc = NumberAt(folder, "r.json", "/best/valid/auc");
  EXPECT_GE(auc, gate.auc_min);
  EXPECT_LE(auc, gate.auc_max);
  EXPECT_LE(NumberAt(folder, "r.json", "/best/valid/logloss"), gate.logloss_max);
}

class Frappe : public ::testing::TestWithParam<std::tuple<Gate, int>> {};

TEST_P(Frappe, ReachesItsGate) { ExpectGate(std::get<0>(GetParam()), std::get<1>(GetParam()), {}); }

// The gate also holds with rows in other number formats; int8 may cost at most 0.002 AUC.
class FrappeFormats : public ::testing::TestWithParam<const char*> {};

TEST_P(FrappeFormats, ReachesItsGate) {
  ExpectGate({"deepfm", 0.983, 1.0, 0.160}, 1, {"--set", std::string("model.with.") + GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Formats, FrappeFormats,
                         ::testing::Values("wire=bf16", "wire=fp16", "wire=int8", "dtype=bf16"));

std::string NameOfCase(const ::testing::TestParamInfo<Frappe::ParamType>& info) {
  return std::string(std::get<0>(info.param).model) + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Models, Frappe,
                         ::testing::Combine(::testing::ValuesIn(kGates),
                                            ::testing::Values(1, 2, 3)),
                         NameOfCase);

}  // namespace
}  // namespace dt::test
