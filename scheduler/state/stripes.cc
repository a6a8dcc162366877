#include "scheduler/state/stripes.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/base/hash.h"
#include "common/layout/owner.h"

namespace dt::scheduler {
namespace {

// The workers that would train now, in order of rank: those of the view, then the others that are
// there.
std::vector<ProcessId> WorkersToBe(const JobContext& job) {
  std::vector<ProcessId> workers = job.record.views.workers;
  for (const Member* worker : job.members.OfRole(Role::kWorker)) {
    const bool has = std::ranges::count(workers, worker->id) > 0;
    if (!has && !worker->draining) workers.push_back(worker->id);
  }
  return workers;
}

}  // namespace

void SendReadData(JobContext& job, const Member& to) {
  ReadDataMessage read{.stripes = job.options.slices(), .own = {}};
  const std::vector<ProcessId> workers = WorkersToBe(job);
  const uint64_t team = std::max(1u, job.options.job.team_size());
  const uint64_t teams = std::clamp<uint64_t>(workers.size() / team, 1, read.stripes);
  const auto rank = static_cast<uint64_t>(std::ranges::find(workers, to.id) - workers.begin());
  for (uint32_t stripe = 0; stripe < read.stripes; ++stripe) {
    const bool own = OwnerOf(stripe, read.stripes, teams) == rank / team;
    if (own || !job.options.job.data.read_part) read.own.push_back(stripe);
  }
  job.out.Send(to, std::move(read));
}

std::string AddStripes(const std::vector<StripeReport>& read, DataReadyMessage& all) {
  for (const StripeReport& stripe : read) {
    const auto at = std::ranges::lower_bound(all.stripes, stripe.number, {}, &StripeReport::number);
    if (at == all.stripes.end() || at->number != stripe.number) {
      all.stripes.insert(at, stripe);
    } else if (at->train_rows != stripe.train_rows) {
      return fmt::format("{} and {} training samples in stripe {}", at->train_rows,
                         stripe.train_rows, stripe.number + 1);
    } else if (*at != stripe) {
      return fmt::format("different values in stripe {}", stripe.number + 1);
    }
  }
  all.train_rows = all.valid_rows = all.test_rows = all.rows_skipped = all.fingerprint = 0;
  for (const StripeReport& stripe : all.stripes) {
    all.train_rows += stripe.train_rows;
    all.valid_rows += stripe.valid_rows;
    all.test_rows += stripe.test_rows;
    all.rows_skipped += stripe.rows_skipped;
    all.fingerprint = CombinedHash(all.fingerprint, stripe.fingerprint);
  }
  return "";
}

bool HasAllStripes(const JobContext& job) {
  return !job.options.job.data.by_slices || job.record.data.stripes.size() == job.options.slices();
}

std::vector<uint64_t> StripeRowsOf(const DataReadyMessage& data) {
  std::vector<uint64_t> rows;
  for (const StripeReport& stripe : data.stripes) rows.push_back(stripe.train_rows);
  return rows;
}

}  // namespace dt::scheduler
