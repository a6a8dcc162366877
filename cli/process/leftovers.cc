#include "cli/process/leftovers.h"

#include "common/storage/scratch_dir.h"
#include "server/log/server_dir.h"

namespace dt::cli {

void RemoveLeftovers(const JobConfig& job) {
  ScratchDir::RemoveAbandoned(job.cluster.server.dir, "rows");
  server::ServerDir::RemoveFormer(job);
}

}  // namespace dt::cli
