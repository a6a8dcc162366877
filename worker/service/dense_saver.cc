#include "worker/service/dense_saver.h"

#include <utility>

#include "common/base/failpoint.h"
#include "common/base/thread_name.h"

namespace dt::worker {

bool DenseSaver::Prepare(uint64_t order, const std::string& folder, const Parameters& values) {
  if (thread_.joinable()) thread_.join();
  prepared_.reset();
  if (values.saves()) prepared_.emplace(order, folder, values);
  return prepared_.has_value();
}

void DenseSaver::Start() {
  if (!prepared_.has_value()) return;
  Save save = *std::exchange(prepared_, std::nullopt);
  if (!threads_) return Write(save);
  thread_ = std::jthread([this, save = std::move(save)] {
    NameThread("saver");
    Write(save);
  });
}

void DenseSaver::Write(const Save& save) {
  PassFailpoint("write", save.order);
  Result<CheckpointFile> file = save.values.Save(save.folder);
  if (file.ok()) return written_({save.order, {*std::move(file)}});
  MutexLock lock(mutex_);
  problem_.Update(file.status());
}

}  // namespace dt::worker
