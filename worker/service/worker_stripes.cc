#include "worker/service/worker_stripes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/layout/owner.h"
#include "worker/data/striped_dataset.h"

namespace dt::worker {

Result<DataReadyMessage> WorkerStripes::Read(const ReadDataMessage& read,
                                             const Interrupted& interrupted) {
  stripes_ = read.stripes;
  const auto open = [&](Split split) {
    return std::make_unique<StripedDataset>(options_.config, split, stripes_, options_.pool);
  };
  data_ = {open(Split::kTrain), open(Split::kValid), open(Split::kTest)};
  DataReadyMessage ready;
  ready.columns = data_.train->columns();
  for (const uint32_t number : read.own) {
    DT_TRY_STATUS(interrupted());
    DT_TRY(const StripeReport report, Open(number));
    ready.stripes.push_back(report);
  }
  LogInfo("data.stripes",
          {{"own", read.own.size()}, {"of", stripes_}, {"train_rows", data_.train->rows()}});
  return ready;
}

Result<StripeReport> WorkerStripes::Open(uint32_t number) const {
  StripeReport report{.number = number};
  const std::pair<const Dataset&, uint64_t&> splits[] = {{*data_.train, report.train_rows},
                                                         {*data_.valid, report.valid_rows},
                                                         {*data_.test, report.test_rows}};
  for (const auto& [data, rows] : splits) {
    DT_TRY(const Dataset* const stripe, data.striped()->Stripe(number));
    rows = stripe->rows();
    report.rows_skipped += stripe->open_stats().rows_skipped;
    report.fingerprint = CombinedHash(report.fingerprint, stripe->fingerprint());
  }
  return report;
}

Status WorkerStripes::Start(const StartMessage& start, const Interrupted& interrupted) {
  team_ = std::max(1u, start.team);
  stripe_rows_ = start.stripe_rows;
  if (stripes_ != stripe_rows_.size()) {
    return Internal("the job has {} stripes of data, this worker has been told of {}",
                    stripe_rows_.size(), stripes_);
  }
  return ReadFor(start.view, interrupted);
}

Status WorkerStripes::ReadFor(const View& view, const Interrupted& interrupted) {
  const auto found = std::ranges::find(view.workers, options_.self);
  if (stripes_ == 0 || found == view.workers.end()) return OkStatus();
  const WorkerActivity::Reading reading(options_.activity);
  const auto team = static_cast<uint64_t>(found - view.workers.begin()) / team_;
  for (uint32_t number = 0; number < stripes_; ++number) {
    if (OwnerOf(number, stripes_, view.workers.size() / team_) != team) continue;
    DT_TRY_STATUS(interrupted());
    DT_TRY(const StripeReport report, Open(number));
    if (report.train_rows == stripe_rows_[number]) continue;
    return Malformed(
        "stripe {} of the training data has {} samples, {} were found as the job began: the files "
        "have changed",
        number + 1, report.train_rows, stripe_rows_[number]);
  }
  return OkStatus();
}

}  // namespace dt::worker
