// Goal: admission, expiry and freezing work together with servers, checkpoints and resuming, and a
// checkpoint can be inspected and exported. Method: the real program on a small job; numpy, where
// it is installed, reads the exported files.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/support/tiny_job.h"

namespace dt::test {
namespace {

using std::chrono::seconds;
using Arguments = std::vector<std::string>;

const Arguments kRules = {"--set", "model.tables.deep.admission={pushes: 3, sketch: 64KiB}",
                          "--set", "model.tables.deep.expiry={steps: 2}",
                          "--set", "model.tables.wide.expiry={steps: 3}",
                          "--set", "checkpoint.every=5"};

void RunJob(const TempFolder& folder, Arguments arguments, const Arguments& more,
            const std::string& name) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), {"--set", "job=" + name, "--result", name + ".json"});
  const ProgramEnd end = RunProgram(folder.path(), arguments, seconds(60));
  ASSERT_EQ(end.exit_code, 0) << name << ": " << end.output;
}

TEST(Lifecycle, RowsComeAndGoAlikeOnAnyServersAndAfterResuming) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 2, .slices = 2});
  RunJob(folder, {"train", job}, {}, "plain");
  RunJob(folder, {"train", job}, kRules, "one");
  const std::string one = ChecksumOf(folder, "one.json");
  EXPECT_NE(one, ChecksumOf(folder, "plain.json"));
  EXPECT_LT(NumberAt(folder, "one.json", "/tables/deep/rows"),
            NumberAt(folder, "plain.json", "/tables/deep/rows"));
  EXPECT_GT(NumberAt(folder, "one.json", "/tables/deep/pushes_refused"), 0);
  EXPECT_GT(NumberAt(folder, "one.json", "/tables/wide/rows_expired"), 0);

  RunJob(folder, {"launch", job, "--set", "cluster.servers=3", "--set", "cluster.workers=2"},
         kRules, "three");
  EXPECT_EQ(ChecksumOf(folder, "three.json"), one);

  RunJob(folder,
         {"launch", job, "--set", "cluster.servers=2", "--set", "cluster.workers=2", "--set",
          "train.epochs=1"},
         kRules, "halves");
  RunJob(folder, {"train", job, "--resume", "auto"}, kRules, "halves");
  EXPECT_EQ(ChecksumOf(folder, "halves.json"), one);
}

TEST(Lifecycle, FrozenTablesStayAsTheyWere) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  RunJob(folder, {"train", job}, {}, "tuned");
  const auto first = nlohmann::json::parse(ChecksumOf(folder, "tuned.json"));
  RunJob(folder, {"train", job, "--resume", "auto", "--set", "train.epochs=2"},
         {"--set", "model.tables.deep.freeze=true"}, "tuned");
  const auto second = nlohmann::json::parse(ChecksumOf(folder, "tuned.json"));
  EXPECT_EQ(second["tables"]["deep"], first["tables"]["deep"]);
  EXPECT_NE(second["tables"]["wide"], first["tables"]["wide"]);
  EXPECT_NE(second["dense"], first["dense"]);
}

// Checks that both files hold the same bytes under the same names, types and shapes.
constexpr std::string_view kCompare = R"(
import ast, json, sys, zipfile

def npz(path):
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            data = archive.read(name)
            assert data[:8] == b"\x93NUMPY\x01\x00"
            end = 10 + int.from_bytes(data[8:10], "little")
            head = ast.literal_eval(data[10:end].decode())
            assert not head["fortran_order"]
            arrays[name.removesuffix(".npy")] = (head["descr"], head["shape"], data[end:])
    return arrays

arrays = npz("tiny.npz")
raw = open("tiny.safetensors", "rb").read()
n = int.from_bytes(raw[:8], "little")
header = json.loads(raw[8:8 + n])
_, _, metadata = arrays.pop("metadata")
assert json.loads(metadata) == header.pop("__metadata__")
assert set(arrays) == set(header), (list(arrays), list(header))
for name, (descr, shape, data) in arrays.items():
    its = header[name]
    begin, end = its["data_offsets"]
    assert {"F32": "<f4", "U64": "<u8"}[its["dtype"]] == descr, name
    assert tuple(its["shape"]) == shape, name
    assert raw[8 + n + begin:8 + n + end] == data, name
rows = int(sys.argv[1])
assert arrays["table.deep.keys"][1] == (rows,)
assert arrays["table.deep.values"][1] == (rows, 8)
assert any(name.startswith("dense.") for name in arrays)
assert sorted(npz("wide.npz")) == ["metadata", "table.wide.keys", "table.wide.values"]
try:
    import numpy as np
except ImportError:
    sys.exit()
with np.load("tiny.npz") as loaded:
    for name, (descr, shape, data) in arrays.items():
        assert loaded[name].shape == shape and loaded[name].tobytes() == data, name
    assert len(np.unique(loaded["table.deep.keys"])) == rows
    assert np.ptp(loaded["table.deep.values"]) > 0.01
)";

TEST(Lifecycle, CheckpointsAreInspectedAndExported) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1, .servers = 2});
  RunJob(folder, {"launch", job}, {}, "tiny");
  const std::string checkpoint = "runs/tiny/checkpoints/step-000000000012";
  const ProgramEnd inspect =
      RunProgram(folder.path(), {"checkpoint", "inspect", checkpoint, "--json"});
  ASSERT_EQ(inspect.exit_code, 0) << inspect.output;
  const auto contents = nlohmann::json::parse(inspect.output);
  const double rows = NumberAt(folder, "tiny.json", "/tables/deep/rows");
  EXPECT_EQ(contents["tables"]["deep"]["rows"], rows);
  EXPECT_EQ(contents["tables"]["deep"]["bytes"],
            NumberAt(folder, "tiny.json", "/tables/deep/bytes"));
  EXPECT_EQ(contents["step"], 12);
  EXPECT_GE(contents["files"].size(), 3u);

  for (const std::string format : {"npz", "safetensors"}) {
    const ProgramEnd end = RunProgram(
        folder.path(), {"export", checkpoint, "--format", format, "--out", "tiny." + format});
    ASSERT_EQ(end.exit_code, 0) << end.output;
  }
  ASSERT_EQ(RunProgram(folder.path(), {"export", checkpoint, "--format", "npz", "--table", "wide",
                                       "--out", "wide.npz"})
                .exit_code,
            0);
  folder.Write("compare.py", std::string(kCompare));
  const std::string command =
      "cd '" + folder.path() + "' && { python3 --version >/dev/null 2>&1 || exit 77; } && " +
      "python3 compare.py " + std::to_string(static_cast<uint64_t>(rows)) + " > compare.txt 2>&1";
  const int code = std::system(command.c_str());
  if (WEXITSTATUS(code) == 77) GTEST_SKIP() << "there is no python3 here";
  EXPECT_EQ(WEXITSTATUS(code), 0) << folder.Read("compare.txt");
}

TEST(Lifecycle, MistakesOfExportAreNamed) {
  TempFolder folder;
  const std::string job = WriteTinyJob(folder, {.epochs = 1});
  RunJob(folder, {"train", job}, {}, "tiny");
  const std::string checkpoint = "runs/tiny/checkpoints/step-000000000012";
  const ProgramEnd onnx = RunProgram(folder.path(), {"export", checkpoint, "--format", "onnx"});
  EXPECT_EQ(onnx.exit_code, 2);
  EXPECT_NE(onnx.output.find("not available yet"), std::string::npos) << onnx.output;
  const ProgramEnd table =
      RunProgram(folder.path(), {"export", checkpoint, "--format", "npz", "--table", "depe"});
  EXPECT_EQ(table.exit_code, 2);
  EXPECT_NE(table.output.find("did you mean \"deep\"?"), std::string::npos) << table.output;
  EXPECT_NE(RunProgram(folder.path(), {"export", "nowhere", "--format", "npz"}).exit_code, 0);
}

}  // namespace
}  // namespace dt::test
