#include "common/config/load_job.h"

#include "common/base/text.h"
#include "common/config/read_sections.h"
#include "common/config/reader/prepare.h"

namespace dt {
Result<JobConfig> LoadJob(const std::string& path, const LoadOptions& options) {
  Problems problems;
  const ConfigNode root = PrepareJob(path, options.overrides, problems);
  if (!root.is_map()) return problems.ToStatus(path);

  JobConfig job;
  job.file = path;
  const MapReader in(&root, "", "", root.mark, problems);
  const MapReader data = in.Sub("data");
  ReadData(data, job.data);
  ReadCommandStream(in, job.data);
  ReadOptimizer(in.Sub("optimizer"), job.optimizer);
  const MapReader parallel = in.Sub("parallel");
  ReadParallel(parallel, job.parallel);
  const std::vector<std::string> stats = parallel.Paths("data_stats");
  if (job.data.stats.empty() && !stats.empty()) job.data.stats = stats[0];
  ReadModel(in.Sub("model"), job);
  ReadRun(in, job);
  if (options.constants) ReadConstants(data, job.data);
  ReadMetrics(in, job);
  CheckJob(in, job);
  DT_TRY_STATUS(problems.ToStatus(path));

  if (job.train.asynchronous()) {
    job.train.slices = 1;
  } else if (job.train.slices == 0) {
    job.train.slices =
        options.auto_slices > 0 ? options.auto_slices : job.cluster.workers / job.team_size();
  }
  FillFingerprints(ReadFileNames(data), job);
  return job;
}

}  // namespace dt
