// Goal: an order to train or to evaluate reads each of its samples once, over all ranks, and tells
// what came of it. Method: trainers over a made-up server and samples that note who read them.
#include "worker/train/trainer.h"

#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/train/scripted_rank.h"
#include "worker/data/epoch_order.h"

namespace dt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<uint32_t> kFirstWorker = {5};  // Owns all slices of asynchronous steps.
constexpr uint64_t kRows = 60;                   // Four steps of 16, the last of them short.

std::vector<uint64_t> RowsUpTo(uint64_t end) {
  std::vector<uint64_t> rows(end);
  std::iota(rows.begin(), rows.end(), uint64_t{0});
  return rows;
}

std::vector<uint64_t> Sorted(std::vector<uint64_t> rows) {
  std::ranges::sort(rows);
  return rows;
}

// One worker of `ranks`.
class TrainedWorker {
 public:
  TrainedWorker(const RankSetting& setting, uint32_t rank, uint32_t ranks,
                std::unique_ptr<Mesh> mesh, ScriptedServer& server)
      : rank_(setting, std::move(mesh), server, server.journal()), job_(rank_.job) {
    job_.parallel.overlap = setting.overlap;
    data_.train = MakeSamples(kRows, &trained);
    data_.valid = MakeSamples(kRows, &validated);
    data_.test = MakeSamples(0, nullptr);
    OrderSlices::NextSplit next_split;
    if (setting.staleness == kUnboundedStaleness) {
      next_split = [this]() -> Result<SplitMessage> {
        if (splits.empty()) return SplitMessage();
        const SplitMessage split = splits.front();
        splits.pop_front();
        return split;
      };
    }
    trainer.emplace(Trainer::Options{
        .job = job_,
        .data = data_,
        .client = *rank_.client,
        .engine = *rank_.engine,
        .team = rank_.team,
        .self = ProcessId(5 + rank),
        .rank = rank,
        .ranks = ranks,
        .progress = progress_,
        .order = order_,
        .next_split = std::move(next_split),
        .interrupted = [] { return OkStatus(); },
        .report = [this](Step step, uint64_t samples) { progress.emplace_back(step, samples); }});
  }

  Script& script() { return rank_.script; }
  // A new order.
  Result<TrainDone> Train(const TrainOrder& order) {
    order_ = {.number = order_.number + 1};
    return trainer->Train(order);
  }

  ReadRows trained, validated;
  std::vector<std::pair<Step, uint64_t>> progress;
  std::deque<SplitMessage> splits;  // Given out one by one.
  std::optional<Trainer> trainer;

 private:
  TrainProgress progress_;
  OrderProgress order_;
  ScriptedRank rank_;
  JobConfig job_;
  Datasets data_;
};

class TrainerTest : public ::testing::Test {
 protected:
  // Workers that are asynchronous have meshes of their own.
  void Open(const RankSetting& setting, uint32_t ranks) {
    workers_.clear();
    server_ = std::make_unique<ScriptedServer>(WireTablesOf(ScriptedJob(setting)), journal_);
    auto meshes = PlainMeshes(ranks);
    for (uint32_t r = 0; r < ranks; ++r) {
      if (setting.staleness > 0) meshes[r] = std::move(PlainMeshes(1).front());
      workers_.push_back(
          std::make_unique<TrainedWorker>(setting, r, ranks, std::move(meshes[r]), *server_));
    }
  }
  // All ranks at once.
  std::vector<TrainDone> Train(const TrainOrder& order) {
    std::vector<Result<TrainDone>> done(workers_.size(), Unavailable("not yet"));
    std::vector<std::jthread> threads;
    for (size_t r = 0; r < workers_.size(); ++r) {
      threads.emplace_back([&, r] { done[r] = workers_[r]->Train(order); });
    }
    threads.clear();
    std::vector<TrainDone> values;
    for (const Result<TrainDone>& d : done) {
      EXPECT_TRUE(d.ok()) << d.status();
      values.push_back(d.value_or(TrainDone()));
    }
    return values;
  }
  // By all ranks.
  std::vector<uint64_t> RowsRead() const {
    std::vector<uint64_t> rows;
    for (const auto& worker : workers_) {
      rows.insert(rows.end(), worker->trained.rows.begin(), worker->trained.rows.end());
    }
    return rows;
  }
  std::vector<Step> Steps(const std::string& what) const {
    std::vector<Step> steps;
    for (const Happening& h : journal_.all()) {
      if (h.what == what) steps.push_back(h.step);
    }
    return steps;
  }

  Journal journal_;
  std::unique_ptr<ScriptedServer> server_;
  std::vector<std::unique_ptr<TrainedWorker>> workers_;
};

TEST_F(TrainerTest, SynchronousRanksReadEverySampleOnceAndTellTheSame) {
  std::vector<std::vector<double>> sums;
  for (const bool overlap : {true, false}) {
    for (const uint32_t ranks : {1u, 2u}) {
      SCOPED_TRACE(fmt::format("{} ranks, overlap {}", ranks, overlap));
      Open({.overlap = overlap}, ranks);
      const auto done = Train({.end_step = 4, .slice_owner = {0, ranks - 1, 0, ranks - 1}});
      EXPECT_EQ(Sorted(RowsRead()), RowsUpTo(kRows));
      for (uint32_t r = 0; r < ranks; ++r) {
        EXPECT_EQ(done[r].end_step, 4u);
        EXPECT_EQ(done[r].samples, kRows);
        ASSERT_EQ(done[r].first_losses.size(), 1u);
        EXPECT_GT(done[r].first_losses[0], 0);
        sums.push_back(done[r].loss_sums);
        EXPECT_EQ(sums.back(), sums.front()) << "bit for bit";
        EXPECT_THAT(workers_[r]->progress, ElementsAre(std::pair(1, 16), std::pair(2, 32),
                                                       std::pair(3, 48), std::pair(4, 60)));
      }
    }
  }
}

// An epoch that is trained in two orders, as around a checkpoint, is the same epoch.
TEST_F(TrainerTest, TwoOrdersReadWhatOneDoes) {
  Open({}, 1);
  Train({.epoch = 3,
         .epoch_first_step = 12,
         .first_step = 12,
         .end_step = 16,
         .slice_owner = {0, 0, 0, 0}});
  const std::vector<uint64_t> whole = RowsRead();
  const auto pushes = server_->pushes();
  Open({}, 1);
  Train({.epoch = 3,
         .epoch_first_step = 12,
         .first_step = 12,
         .end_step = 13,
         .slice_owner = {0, 0, 0, 0}});
  const TrainDone done = Train({.epoch = 3,
                                .epoch_first_step = 12,
                                .first_step = 13,
                                .end_step = 16,
                                .slice_owner = {0, 0, 0, 0}})[0];
  EXPECT_EQ(RowsRead(), whole);
  EXPECT_EQ(server_->pushes(), pushes);
  EXPECT_EQ(done.samples, kRows - 16);
  EXPECT_THAT(workers_[0]->trained.epochs, ElementsAre(3));
  ASSERT_TRUE(workers_[0]->trainer->Evaluate({.step = 16, .split = SplitKind::kValid}).ok());
  EXPECT_THAT(workers_[0]->validated.epochs, ElementsAre(0)) << "whatever was trained before";
}

// The engine computes with rows of the order's slices, which go with the order. (What it reads too
// late only AddressSanitizer sees.)
TEST_F(TrainerTest, WhereverAnOrderFailsTheEngineRestsAfterwards) {
  for (const Step staleness : {Step{0}, Step{4}}) {
    const std::vector<uint32_t> owner = staleness == 0 ? std::vector<uint32_t>(4) : kFirstWorker;
    bool fails = true;
    for (size_t point = 0; fails; ++point) {
      Open({.slices = static_cast<uint32_t>(owner.size()), .staleness = staleness}, 1);
      workers_[0]->script().FailAt({.number = point}, Script::Fault::kForGood);
      fails = !workers_[0]->trainer->Train({.end_step = 4, .slice_owner = owner}).ok();
      EXPECT_TRUE(fails || point > 8) << "there are more calls than that";
    }
  }
}

TEST_F(TrainerTest, TheOrdersRateReachesTheServers) {
  Open({}, 1);
  Train({.end_step = 1, .lr_scale = 0.25f, .slice_owner = {0, 0, 0, 0}});
  ASSERT_EQ(server_->pushes().size(), 4u);
  for (const auto& [id, content] : server_->pushes()) EXPECT_TRUE(content.starts_with("0.25 4 "));
}

TEST_F(TrainerTest, AnOrderThatThePlanCannotDoIsRefusedAndNothingIsRead) {
  Open({}, 1);
  for (const TrainOrder& order :
       {TrainOrder{.end_step = 1, .slice_owner = {0, 0, 0}},
        TrainOrder{
            .epoch_first_step = 5, .first_step = 4, .end_step = 6, .slice_owner = {0, 0, 0, 0}}}) {
    const Result<TrainDone> done = workers_[0]->trainer->Train(order);
    EXPECT_EQ(done.status().code(), StatusCode::kInternal);
    EXPECT_THAT(ToText(done.status()), HasSubstr("which the plan cannot do"));
  }
  EXPECT_THAT(RowsRead(), IsEmpty());
  EXPECT_THAT(journal_.all(), IsEmpty());
}

TEST_F(TrainerTest, AsynchronousWorkersReadTheirPartsAndSetDenseValuesOnce) {
  Open({.slices = 1, .staleness = 4, .workers = 2}, 2);
  const auto done = Train({.end_step = 4, .slice_owner = {5, 6}});
  EXPECT_EQ(Sorted(RowsRead()), RowsUpTo(kRows));
  EXPECT_EQ(done[0].samples + done[1].samples, kRows);
  EXPECT_EQ(server_->pushes().size(), 2u * 4) << "each worker's own, for each step";
  EXPECT_EQ(Steps("set").size(), 2u);
  Train({.epoch = 1, .epoch_first_step = 4, .first_step = 4, .end_step = 8, .slice_owner = {5, 6}});
  EXPECT_EQ(Steps("set").size(), 2u) << "the servers have them";
  EXPECT_EQ(server_->pushes().size(), 2u * 8);
  for (const auto& worker : workers_) EXPECT_THAT(worker->trained.epochs, ElementsAre(0, 1));
}

// Parts 0 to 4 of a second epoch, in two pieces: two and a half steps of two slices.
TEST_F(TrainerTest, WithoutABoundAWorkerReadsThePartsThatItIsGiven) {
  Open({.slices = 1, .staleness = kUnboundedStaleness, .workers = 2}, 2);
  workers_.pop_back();
  TrainedWorker& worker = *workers_[0];
  worker.splits = {{.begin = 0, .end = 3}, {.begin = 3, .end = 5}};
  const TrainOrder order{
      .epoch = 1, .epoch_first_step = 4, .first_step = 4, .end_step = 8, .slice_owner = {5, 6}};
  const TrainDone done = Train(order)[0];
  EXPECT_EQ(done.samples, 40u);
  const JobConfig job = ScriptedJob({});
  std::vector<uint64_t> want;
  EpochOrder(job.seed, 1, kRows, job.data.shuffle_window).Rows(0, 40, want);
  EXPECT_EQ(worker.trained.rows, want);
  EXPECT_THAT(worker.trained.epochs, ElementsAre(1));
  EXPECT_EQ(Steps("push"), (std::vector<Step>{4, 4, 5, 5, 6}));
  EXPECT_EQ(worker.progress.back(), std::pair(Step{7}, uint64_t{40}));
}

TEST_F(TrainerTest, AnEvaluationReadsEveryBatchOnceInTheOrderOfTheFile) {
  Open({}, 2);
  std::vector<uint64_t> batches, samples;
  for (uint32_t r = 0; r < 2; ++r) {
    const auto done = workers_[r]->trainer->Evaluate({.step = 9, .split = SplitKind::kValid});
    ASSERT_TRUE(done.ok()) << done.status();
    for (const EvaluatePart& part : done->losses[0].parts) {
      EXPECT_EQ(part.batch % 2, r);
      batches.push_back(part.batch);
      samples.push_back(part.samples);
    }
    EXPECT_TRUE(std::ranges::is_sorted(workers_[r]->validated.rows));
  }
  EXPECT_THAT(batches, ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(samples, ElementsAre(16, 16, 16, 12));
  std::vector<uint64_t> rows = workers_[0]->validated.rows;
  const std::vector<uint64_t>& others = workers_[1]->validated.rows;
  rows.insert(rows.end(), others.begin(), others.end());
  EXPECT_EQ(Sorted(rows), RowsUpTo(kRows));
  EXPECT_THAT(Steps("push"), IsEmpty());
}

TEST_F(TrainerTest, ASplitWithoutRowsIsEvaluatedToNothing) {
  Open({}, 1);
  const auto done = workers_[0]->trainer->Evaluate({.step = 9, .split = SplitKind::kTest});
  ASSERT_TRUE(done.ok()) << done.status();
  ASSERT_EQ(done->losses.size(), 1u);
  EXPECT_THAT(done->losses[0].parts, IsEmpty());
}

}  // namespace
}  // namespace dt::worker
