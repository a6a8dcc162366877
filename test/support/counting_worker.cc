#include "test/support/counting_worker.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/philox.h"
#include "common/control/key_files.h"
#include "common/net/shm/shm_network.h"
#include "common/net/socket.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::test {
namespace {

constexpr Duration kPoll = milliseconds(50);
constexpr uint64_t kRows = 1'000'000'000;  // More rows than any test uses.

std::unique_ptr<Network> NetworkOf(const JobConfig& job) {
  const Result<ZmqOptions> options = SocketOptionsOf(job, {});
  DT_CHECK_MSG(options.ok(), "{}", ToText(options.status()));
  return MakeZmqNetwork(*options);
}

}  // namespace

std::string CountingJob(uint32_t dim, const std::string& more) {
  return fmt::format(R"(job: counting
seed: 3
data:
  format: csv
  train: [absent.csv]
  columns:
    - {{name: click, role: label, type: float}}
    - {{name: item, type: id}}
model:
  tables:
    item: {{dim: {}, init: zeros, optimizer: {{name: sgd, lr: 1}}}}
  graph:
    - {{name: e, op: lookup, table: item, inputs: [item]}}
    - {{name: logit, op: dense, inputs: [e], units: 1}}
  loss: [{{type: binary_cross_entropy, input: logit, label: click}}]
train: {{batch_size: 10, slices: 2, epochs: 1}}
{}
)",
                     dim, more);
}

CountingWorker::CountingWorker(const JobConfig& job, const std::string& scheduler,
                               const Options& options)
    : job_(job),
      options_(options),
      network_(NetworkOf(job)),
      data_network_(MakeShmNetwork(*network_)) {
  ControlLink::Options link;
  link.network = network_.get();
  link.scheduler = scheduler;
  link.join.role = Role::kWorker;
  link.join.job_fingerprint = job_.fingerprint;
  auto opened = ControlLink::Open(link);
  opened_ = opened.status();
  if (opened.ok()) link_ = *std::move(opened);
}

Status CountingWorker::Run(const std::function<bool()>& done) {
  DT_TRY_STATUS(opened_);
  DataReadyMessage ready;
  ready.train_rows = kRows;
  ready.columns = job_.data.columns;
  link_->Send(ready);
  const TimePoint deadline = SystemClock().Now() + options_.timeout;
  while (!stopped_ && !done()) {
    auto message = link_->Receive(kPoll);
    if (message.status().code() == StatusCode::kDeadlineExceeded) {
      if (client_ == nullptr && SystemClock().Now() > deadline) return message.status();
      continue;
    }
    DT_TRY_STATUS(message.status());
    if (const auto* start = std::get_if<StartMessage>(&*message)) {
      DT_TRY_STATUS(Start(*start));
      link_->Send(ReadyMessage{});
    } else if (const auto* order = std::get_if<OrderMessage>(&*message)) {
      DT_TRY_STATUS(Carry(*order, done));
    }
  }
  return OkStatus();
}

Status CountingWorker::Start(const StartMessage& start) {
  slices_ = start.slices;
  worker::PsClient::Options client;
  client.network = options_.shared_memory ? data_network_.get() : network_.get();
  client.requests.wire_tables = {0};
  client.requests.tables = {{job_.model.tables[0].dim, job_.model.tables[0].wire}};
  client.requests.timeout = options_.timeout;
  client.requests.resend_after = options_.resend_after;
  client.interrupted = [this] { return link_->ended() ? link_->end_status() : OkStatus(); };
  DT_TRY(client_, worker::PsClient::Open(start.view, std::move(client)));
  return OkStatus();
}

Status CountingWorker::Carry(const OrderMessage& order, const std::function<bool()>& done) {
  OrderDoneMessage answer{order.number, {}};
  if (const auto* train = std::get_if<TrainOrder>(&order.what)) {
    const TimePoint begin = SystemClock().Now();
    for (Step step = train->first_step; step < train->end_step; ++step) {
      if (done()) {
        stopped_ = true;
        return OkStatus();
      }
      DT_TRY_STATUS(OneStep(step));
    }
    const double seconds = SecondsBetween(begin, SystemClock().Now());
    seconds_ = seconds_ + seconds;
    answer.result =
        TrainDone{train->end_step, (train->end_step - train->first_step) * 10, {0}, {}, seconds};
  } else if (std::holds_alternative<SaveOrder>(order.what)) {
    answer.result = SaveDone{};
  } else {
    return Internal("an order that a counting worker does not know");
  }
  link_->Send(std::move(answer));
  return OkStatus();
}

// Distinct keys, different for every step and slice.
std::vector<Key> CountingWorker::KeysOf(Step step, SliceIndex slice) const {
  std::set<Key> keys;
  for (uint32_t i = 0; i < options_.keys_a_push; ++i) {
    keys.insert(Philox(17, step * slices_ + slice, i)[0] % options_.keys);
  }
  return {keys.begin(), keys.end()};
}

worker::LookupPlan CountingWorker::PlanOf(std::vector<Key> keys) const {
  const auto shard = [this](Key key) {
    return ShardOf(job_.model.tables[0].id, key, client_->shards());
  };
  std::ranges::stable_sort(keys, {}, shard);
  worker::LookupPlan plan;
  for (uint32_t row = 0; row < keys.size(); ++row) {
    if (plan.groups.empty() || plan.groups.back().shard != shard(keys[row])) {
      plan.groups.push_back({shard(keys[row]), 0, row, 0});
    }
    ++plan.groups.back().rows;
  }
  plan.tables = {std::move(keys)};
  return plan;
}

Status CountingWorker::Check(const worker::LookupPlan& plan, Step step) {
  worker::PulledRows rows;
  client_->BeginPull(plan, step, PullMode::kTrain);
  DT_TRY_STATUS(client_->FinishPull(plan, rows));
  const std::span<const float> values = rows.table(0);
  const size_t dim = job_.model.tables[0].dim;
  for (size_t i = 0; i < plan.tables[0].size(); ++i) {
    const auto count = counts_.find(plan.tables[0][i]);
    const auto expected = count == counts_.end() ? 0.0f : -static_cast<float>(count->second);
    for (size_t d = 0; d < dim; ++d) {
      if (values[i * dim + d] == expected) continue;
      return DataLoss("step {}: key {} has {} at column {}; {} was counted", step,
                      plan.tables[0][i], values[i * dim + d], d, expected);
    }
  }
  return OkStatus();
}

Status CountingWorker::OneStep(Step step) {
  const size_t dim = job_.model.tables[0].dim;
  for (SliceIndex slice = 0; slice < slices_; ++slice) {
    const worker::LookupPlan plan = PlanOf(KeysOf(step, slice));
    DT_TRY_STATUS(Check(plan, step));
    const std::vector<float> ones(plan.tables[0].size() * dim, 1.0f);
    const std::span<const float> gradients[] = {ones};
    client_->BeginPush({.step = step, .slice = slice, .slices = slices_}, plan, gradients);
    DT_TRY_STATUS(client_->WaitForPushes());
    ++pushes_;
  }
  for (SliceIndex slice = 0; slice < slices_; ++slice) {
    for (const Key key : KeysOf(step, slice)) ++counts_[key];
  }
  DT_TRY_STATUS(client_->Complete(step));
  steps_ = step + 1;
  return OkStatus();
}

Status CountingWorker::CheckAll() {
  std::vector<Key> keys(options_.keys);
  std::iota(keys.begin(), keys.end(), Key{0});
  return Check(PlanOf(std::move(keys)), steps_);
}

}  // namespace dt::test
