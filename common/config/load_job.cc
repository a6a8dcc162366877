#include "common/config/load_job.h"

#include "common/base/text.h"
#include "common/config/prepare.h"
#include "common/config/read_sections.h"

namespace dt {
namespace {

template <class E>
std::string_view ChoiceName(std::string_view section, std::string_view name, E value) {
  return SplitText(KeyOf(section, name).values, '|')[static_cast<size_t>(value)];
}

}  // namespace

Result<JobConfig> LoadJob(const std::string& path, const LoadOptions& options) {
  Problems problems;
  const ConfigNode root = PrepareJob(path, options.overrides, problems);
  if (!root.is_map()) return problems.ToStatus(path);

  JobConfig job;
  job.file = path;
  const MapReader in(&root, "", "", root.mark, problems);
  const MapReader data = in.Sub("data");
  ReadData(data, job.data);
  ReadOptimizer(in.Sub("optimizer"), job.optimizer);
  ReadParallel(in.Sub("parallel"), job.parallel);
  ReadModel(in.Sub("model"), job);
  ReadRun(in, job);
  ReadMetrics(in, job);
  CheckJob(in, job);
  DT_TRY_STATUS(problems.ToStatus(path));

  if (job.train.asynchronous()) {
    job.train.slices = 1;
  } else if (job.train.slices == 0) {
    job.train.slices = options.auto_slices > 0 ? options.auto_slices : job.cluster.workers;
  }
  FillFingerprints(ReadFileNames(data), job);
  return job;
}

std::string_view NameOf(OptimizerKind kind) { return ChoiceName("optimizer", "name", kind); }
std::string_view NameOf(DataFormat format) { return ChoiceName("data", "format", format); }
std::string_view NameOf(Device device) { return ChoiceName("table", "device", device); }
std::string_view NameOf(EvalDefault value) { return ChoiceName("table", "eval_default", value); }
std::string_view NameOf(L2Scope scope) { return ChoiceName("table", "l2_scope", scope); }
std::string_view NameOf(ColumnType type) { return ChoiceName("column", "type", type); }

std::string_view NameOf(InitKind kind) {
  constexpr std::string_view kNames[] = {"zeros",   "constant",      "normal",
                                         "uniform", "xavier_normal", "xavier_uniform"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace dt
