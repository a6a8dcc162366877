#include "test/e2e/counting/counting_worker.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/pause.h"
#include "common/base/philox.h"
#include "common/control/key_files.h"
#include "common/net/shm/shm_network.h"
#include "common/net/socket.h"
#include "worker/lookup/lookup_plan.h"

namespace dt::test {
namespace {

constexpr Duration kPoll = milliseconds(50), kPeerPoll = milliseconds(1);
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
      team_(options.team == nullptr ? alone_ : *options.team),
      network_(NetworkOf(job)),
      data_network_(MakeShmNetwork(*network_)) {
  ControlLink::Options link;
  link.network = network_.get();
  link.scheduler = scheduler;
  link.join.role = Role::kWorker;
  link.join.job_fingerprint = job_.fingerprint;
  link.on_map = [this](ShardMap map) { maps_.Set(std::move(map)); };
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
    auto message = link_->Receive(kPoll, ControlLink::Orders::kBegin);
    if (message.status().code() == StatusCode::kDeadlineExceeded) {
      if (client_ == nullptr && SystemClock().Now() > deadline) return message.status();
      continue;
    }
    if (link_->ended() && link_->end_status().ok()) return OkStatus();
    DT_TRY_STATUS(message.status());
    DT_TRY_STATUS(Take(*message, done));
  }
  return OkStatus();
}

Status CountingWorker::Take(const ControlMessage& message, const std::function<bool()>& done) {
  if (const auto* start = std::get_if<StartMessage>(&message)) {
    DT_TRY_STATUS(Start(*start));
    link_->Send(ReadyMessage{});
  } else if (const auto* order = std::get_if<OrderMessage>(&message)) {
    DT_TRY_STATUS(Carry(*order, done));
  }
  return OkStatus();
}

Status CountingWorker::Start(const StartMessage& start) {
  const std::vector<ProcessId>& workers = start.view.workers;
  rank_ = static_cast<uint32_t>(std::ranges::find(workers, link_->welcome().id) - workers.begin());
  DT_CHECK(rank_ < team_.workers() && workers.size() == team_.workers());
  parts_ = job_.train.asynchronous() ? team_.workers() : start.slices;
  worker::PsClient::Options client;
  client.network = options_.shared_memory ? data_network_.get() : network_.get();
  client.requests.wire_tables = {0};
  client.requests.tables = {{job_.model.tables[0].dim, job_.model.tables[0].wire}};
  client.requests.timeout = options_.timeout;
  client.requests.resend_after = options_.resend_after;
  client.requests.lease = job_.cluster.lease;
  client.interrupted = [this] { return link_->ended() ? link_->end_status() : OkStatus(); };
  client.newer_map = [this](MapVersion version) { return maps_.NewerThan(version); };
  client.unreachable = [this](bool waiting, const std::vector<ProcessId>& servers) {
    progress_.waiting = waiting;
    progress_.unreachable = servers;
    link_->SetProgress(progress_);
  };
  DT_TRY(client_, worker::PsClient::Open(start.view, std::move(client)));
  return OkStatus();
}

// ------------------------------------------------------------ orders

Status CountingWorker::Carry(const OrderMessage& order, const std::function<bool()>& done) {
  OrderDoneMessage answer{order.number, {}};
  if (const auto* train = std::get_if<TrainOrder>(&order.what)) {
    DT_TRY(answer.result, Train(*train, done));
    if (stopped_) return OkStatus();
  } else if (std::holds_alternative<SaveOrder>(order.what)) {
    answer.result = SaveDone{};
  } else if (std::holds_alternative<FinishOrder>(order.what)) {
    DT_TRY_STATUS(CheckAll());
    answer.result = FinishDone{};
  } else {
    return Internal("an order that a counting worker does not know");
  }
  link_->Send(std::move(answer));
  return OkStatus();
}

Result<TrainDone> CountingWorker::Train(const TrainOrder& order,
                                        const std::function<bool()>& done) {
  const TimePoint begin = SystemClock().Now();
  for (Step step = order.first_step; step < order.end_step; ++step) {
    if (done()) {
      stopped_ = true;
      return TrainDone{};
    }
    if (options_.before_step) options_.before_step(step);
    DT_TRY_STATUS(job_.train.asynchronous() ? AsynchronousStep(order, step)
                                            : SynchronousStep(order, step));
    steps_ = progress_.step = step + 1;
    link_->SetProgress(progress_);
  }
  const double seconds = SecondsBetween(begin, SystemClock().Now());
  seconds_ = seconds_ + seconds;
  return TrainDone{order.end_step, (order.end_step - order.first_step) * 10, {0}, {}, seconds};
}

Status CountingWorker::SynchronousStep(const TrainOrder& order, Step step) {
  for (SliceIndex slice = 0; slice < parts_; ++slice) {
    if (order.slice_owner[slice] != rank_) continue;
    const Plan plan = PlanOf(KeysOf(step, slice));
    DT_TRY_STATUS(Check(plan, step, Counted()));
    DT_TRY_STATUS(Push({.step = step, .slice = slice, .slices = parts_}, plan));
  }
  for (SliceIndex slice = 0; slice < parts_; ++slice) Count(step, slice);
  team_.End(rank_, step);
  DT_TRY_STATUS(AwaitOthers(step));
  return client_->Complete(step);
}

Status CountingWorker::AsynchronousStep(const TrainOrder& order, Step step) {
  const Step bound = job_.train.staleness;
  for (uint32_t rank = 0; rank < parts_; ++rank) {
    if (rank != rank_ && step > bound) Count(step - bound - 1, rank);
  }
  // Steps of others that may be in the rows: none begins one that is further ahead.
  const Step first = step - std::min(step, bound), end = step + bound + 2;
  std::map<uint32_t, std::vector<std::vector<Key>>> others;
  for (uint32_t rank = 0; rank < parts_; ++rank) {
    if (rank == rank_) continue;
    for (Step theirs = first; theirs < end; ++theirs) others[rank].push_back(KeysOf(theirs, rank));
  }
  const Plan plan = PlanOf(KeysOf(step, rank_));
  const Bounds counted = Counted();
  DT_TRY_STATUS(Check(plan, step, [&](Key key) {
    auto [least, most] = counted(key);
    for (const auto& [rank, steps] : others) {
      for (Step theirs = first; theirs < std::min(end, team_.begun(rank)); ++theirs) {
        most += std::ranges::binary_search(steps[theirs - first], key) ? 1 : 0;
      }
    }
    return std::pair(least, most);
  }));
  team_.Begin(rank_, step);
  const SenderTurn turn{.worker = link_->welcome().id,
                        .order = order.first_step,
                        .number = step - order.first_step,
                        .clock = step + 1,
                        .settled = order.settled_step};
  DT_TRY_STATUS(Push({.step = step, .slice = rank_, .slices = parts_, .turn = turn}, plan));
  team_.End(rank_, step);
  Count(step, rank_);
  return OkStatus();
}

Status CountingWorker::Push(const worker::PushInfo& info, const Plan& plan) {
  const std::vector<float> ones(plan.tables[0].size() * job_.model.tables[0].dim, 1.0f);
  const std::span<const float> gradients[] = {ones};
  client_->BeginPush(info, plan, gradients);
  DT_TRY_STATUS(client_->WaitForPushes());
  ++pushes_;
  return OkStatus();
}

// A barrier.
Status CountingWorker::AwaitOthers(Step step) {
  const TimePoint deadline = SystemClock().Now() + options_.timeout;
  while (!team_.AllEnded(step)) {
    if (link_->ended()) return link_->end_status();
    if (SystemClock().Now() > deadline) return Timeout("step {}: another worker hangs", step);
    Pause(kPeerPoll);
  }
  return OkStatus();
}

// ------------------------------------------------------------ counting

// Distinct keys in order, different for every step and part.
std::vector<Key> CountingWorker::KeysOf(Step step, uint32_t part) const {
  std::set<Key> keys;
  for (uint32_t i = 0; i < options_.keys_a_push; ++i) {
    keys.insert(Philox(17, step * parts_ + part, i)[0] % options_.keys);
  }
  return {keys.begin(), keys.end()};
}

void CountingWorker::Count(Step step, uint32_t part) {
  for (const Key key : KeysOf(step, part)) ++counts_[key];
}

CountingWorker::Bounds CountingWorker::Counted() const {
  return [this](Key key) {
    const auto count = counts_.find(key);
    const uint64_t times = count == counts_.end() ? 0 : count->second;
    return std::pair(times, times);
  };
}

CountingWorker::Plan CountingWorker::PlanOf(std::vector<Key> keys) const {
  const auto shard = [this](Key key) {
    return ShardOf(job_.model.tables[0].id, key, client_->shards());
  };
  std::ranges::stable_sort(keys, {}, shard);
  Plan plan;
  for (uint32_t row = 0; row < keys.size(); ++row) {
    if (plan.groups.empty() || plan.groups.back().shard != shard(keys[row])) {
      plan.groups.push_back({shard(keys[row]), 0, row, 0});
    }
    ++plan.groups.back().rows;
  }
  plan.tables = {std::move(keys)};
  return plan;
}

Status CountingWorker::Check(const Plan& plan, Step step, const Bounds& bounds) {
  worker::PulledRows rows;
  client_->BeginPull(plan, step, PullMode::kTrain);
  DT_TRY_STATUS(client_->FinishPull(plan, rows));
  const std::span<const float> values = rows.table(0);
  const size_t dim = job_.model.tables[0].dim;
  for (size_t i = 0; i < plan.tables[0].size(); ++i) {
    const Key key = plan.tables[0][i];
    const auto [least, most] = bounds(key);
    for (size_t d = 0; d < dim; ++d) {
      const float times = -values[i * dim + d];
      const bool whole = times == std::floor(times) && times == -values[i * dim];
      if (whole && times >= static_cast<float>(least) && times <= static_cast<float>(most))
        continue;
      return DataLoss("step {}: key {} has {} at column {}; {} to {} were counted", step, key,
                      values[i * dim + d], d, least, most);
    }
  }
  return OkStatus();
}

Status CountingWorker::CheckAll() {
  if (job_.train.asynchronous()) {
    counts_.clear();
    for (Step step = 0; step < steps_; ++step) {
      for (uint32_t part = 0; part < parts_; ++part) Count(step, part);
    }
  }
  std::vector<Key> keys(options_.keys);
  std::iota(keys.begin(), keys.end(), Key{0});
  return Check(PlanOf(std::move(keys)), steps_, Counted());
}

}  // namespace dt::test
