// Goal: slices come in order with their own rows, whatever of them is pulled ahead, announced or
// kept. Method: a made-up server whose rows are a function of their key; its journal tells what it
// was asked for.
#include "worker/train/row_puller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/pause.h"
#include "test/unit/worker/train/scripted_rank.h"

namespace dt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Step kSlicesToRead = 6;

class RowPullerTest : public ::testing::Test {
 protected:
  RowPullerTest() {
    for (Step step = 0; step < kSlicesToRead; ++step) setting_.read.push_back({step, 0, 4, 4});
    setting_.slices = 1;
  }
  void Open() { rank_.emplace(setting_, std::move(PlainMeshes(1).front()), server_, journal_); }
  RowPuller& puller() { return *rank_->puller; }
  void Begin(Step step, PullMode mode = PullMode::kTrain) {
    const Status begun = puller().Begin(step, mode);
    ASSERT_TRUE(begun.ok()) << begun;
  }
  const RowPuller::Slice* Finish() {
    const Result<const RowPuller::Slice*> slice = puller().Finish();
    EXPECT_TRUE(slice.ok()) << slice.status();
    return slice.value_or(nullptr);
  }
  // The slice is that of the step and has the rows of its keys.
  static void ExpectSlice(const RowPuller::Slice* slice, Step step) {
    ASSERT_NE(slice, nullptr);
    EXPECT_EQ(slice->plan->batch.step, step);
    ASSERT_EQ(slice->rows.size(), 1u);
    const std::vector<Key>& keys = slice->plan->tables[0];
    const size_t dim = slice->rows[0].size() / keys.size();
    ASSERT_EQ(dim, 4u);
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t c = 0; c < dim; ++c) {
        ASSERT_EQ(slice->rows[0][i * dim + c], ScriptedServer::ValueOf(0, keys[i], c));
      }
    }
  }
  // Steps at which the server was asked in this way.
  std::vector<Step> Asked(const std::string& what) const {
    std::vector<Step> steps;
    for (const Happening& h : journal_.all()) {
      if (h.what == what) steps.push_back(h.step);
    }
    return steps;
  }

  RankSetting setting_;
  Journal journal_;
  ScriptedServer server_{WireTablesOf(ScriptedJob({})), journal_};
  std::optional<ScriptedRank> rank_;
};

TEST_F(RowPullerTest, SlicesComeInOrderWithTheirRowsAndThenNone) {
  Open();
  EXPECT_EQ(Finish(), nullptr) << "none is begun";
  for (Step step = 0; step < kSlicesToRead; ++step) {
    Begin(step);
    EXPECT_EQ(puller().ahead(), 1u);
    ExpectSlice(Finish(), step);
    EXPECT_EQ(puller().ahead(), 0u);
  }
  Begin(kSlicesToRead);
  EXPECT_EQ(puller().ahead(), 0u) << "there is none to begin";
  EXPECT_EQ(Finish(), nullptr);
}

TEST_F(RowPullerTest, SeveralMayBeAheadAndTheFirstBegunIsNext) {
  Open();
  EXPECT_EQ(puller().next(), nullptr);
  for (Step step = 0; step < 4; ++step) Begin(step);
  EXPECT_EQ(puller().ahead(), 4u);
  EXPECT_THAT(Asked("pull"), ElementsAre(0, 1, 2, 3)) << "they are asked for at once";
  for (Step step = 0; step < 4; ++step) {
    const LookupPlan* const next = puller().next();
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->batch.step, step);
    const RowPuller::Slice* const slice = Finish();
    ExpectSlice(slice, step);
    EXPECT_EQ(slice->plan.get(), next) << "it stays where it is";
  }
}

TEST_F(RowPullerTest, ASliceAndTheOneBeforeStayAsTheyAre) {
  Open();
  for (Step step = 0; step < 3; ++step) Begin(step);
  const RowPuller::Slice* const first = Finish();
  const std::vector<float> rows(first->rows[0].begin(), first->rows[0].end());
  const std::vector<Key> keys = first->plan->tables[0];
  const RowPuller::Slice* const second = Finish();
  Begin(3);
  EXPECT_TRUE(std::ranges::equal(first->rows[0], rows));
  EXPECT_EQ(first->plan->tables[0], keys);
  ExpectSlice(first, 0);
  ExpectSlice(second, 1);
  ExpectSlice(Finish(), 2);
  ExpectSlice(second, 1);
}

TEST_F(RowPullerTest, WhatIsOnDiskIsAnnouncedOnceBeforeItIsPulled) {
  setting_.read_ahead = true;
  server_.SayRowsAreOnDisk();
  Open();
  for (Step step = 0; step < kSlicesToRead; ++step) {
    Begin(step);
    ExpectSlice(Finish(), step);
    if (step == 0) {
      EXPECT_THAT(Asked("prefetch"), IsEmpty()) << "the server has not said so yet";
      // The reader has finished two more slices when it asks for the one behind them.
      PollUntil(SystemClock().Now() + seconds(60), milliseconds(1),
                [&] { return rank_->asked_for >= 4; });
    }
  }
  const std::vector<Step> announced = Asked("prefetch");
  EXPECT_GE(announced.size(), 1u);
  EXPECT_LE(announced.size(), kSlicesToRead - 2) << "neither of the first two can be";
  EXPECT_THAT(Asked("pull"), ElementsAre(0, 1, 2, 3, 4, 5)) << "each is pulled, once";
}

TEST_F(RowPullerTest, AnEvaluationAnnouncesNothing) {
  setting_.read_ahead = true;
  setting_.purpose = LookupFor::kEvaluate;
  server_.SayRowsAreOnDisk();
  Open();
  for (Step step = 0; step < kSlicesToRead; ++step) {
    Begin(step, PullMode::kEvaluate);
    ExpectSlice(Finish(), step);
  }
  EXPECT_THAT(Asked("prefetch"), IsEmpty());
}

// The rows of the made-up samples repeat: what was pulled is not pulled again while it serves.
TEST_F(RowPullerTest, WithACacheOnlyWhatItLacksIsPulled) {
  RowCache cache({.dims = {4}, .rows = 1024, .staleness = 100});
  setting_.cache = &cache;
  Open();
  std::set<Key> pulled;
  for (Step step = 0; step < kSlicesToRead; ++step) {
    const size_t pulls = server_.pulled().size();
    Begin(step);
    const RowPuller::Slice* const slice = Finish();
    ExpectSlice(slice, step);
    std::set<Key> lacked;
    for (const Key key : slice->plan->tables[0]) {
      if (pulled.insert(key).second) lacked.insert(key);
    }
    std::set<Key> asked;
    const std::vector<std::vector<Key>> all = server_.pulled();
    for (size_t p = pulls; p < all.size(); ++p) asked.insert(all[p].begin(), all[p].end());
    EXPECT_EQ(asked, lacked) << step;
  }
  EXPECT_GT(cache.hits(), 0u);
}

TEST_F(RowPullerTest, AReaderThatFailsIsTheErrorOfBegin) {
  Open();
  Begin(0);
  rank_->script.FailAt({.number = rank_->script.reached()[0].size()}, Script::Fault::kOnce);
  EXPECT_THAT(ToText(puller().Begin(1, PullMode::kTrain)), HasSubstr("label of sample 4096"));
  EXPECT_EQ(puller().ahead(), 1u);
  ExpectSlice(Finish(), 0);
}

TEST_F(RowPullerTest, ANetworkThatFailsIsTheErrorOfFinish) {
  Open();
  Begin(0);
  rank_->script.FailAt({.number = rank_->script.reached()[0].size()}, Script::Fault::kForGood);
  EXPECT_THAT(ToText(puller().Finish().status()), HasSubstr("the script ends"));
}

}  // namespace
}  // namespace dt::worker
