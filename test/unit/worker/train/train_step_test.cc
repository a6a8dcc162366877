// Goal: what train_step.h says about a rank that dies or fails between any two lines. Method: every
// call that leaves a rank (a read, a message sent or received, an exchange with other ranks) fails
// in turn, once or from then on; the other rank really runs beside it, and the journal tells what
// servers and ranks have seen.
#include "worker/train/train_step.h"

#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/worker/train/scripted_rank.h"

namespace dt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Fault = Script::Fault;
using Side = Script::Side;

struct Story {
  uint32_t ranks = 2;
  bool overlap = true;
  Script::Point fail_at = {};  // Where rank 0 fails.
  Fault fault = Fault::kOnce;
  Step steps = 1;
  Timeline* timeline = nullptr;  // Of rank 0.
};

struct Outcome {
  std::vector<Status> ends;         // By rank.
  std::vector<std::string> values;  // By rank: a checksum of the dense ones; "" after an error.
  std::vector<Happening> journal;
  Script::Points points;  // All that rank 0 reached.
  std::map<std::tuple<Step, SliceIndex, uint32_t>, std::string> pushes;

  // Where in the journal it is; all of it if it is not there.
  size_t At(uint32_t rank, const std::string& what, Step step = 0, SliceIndex slice = 0) const {
    const auto is_it = [&](const Happening& h) {
      return h.rank == rank && h.what == what && h.step == step && h.slice == slice;
    };
    return static_cast<size_t>(std::ranges::find_if(journal, is_it) - journal.begin());
  }
  bool Has(uint32_t rank, const std::string& what, Step step = 0, SliceIndex slice = 0) const {
    return At(rank, what, step, slice) < journal.size();
  }
  // Where the servers are first told that step 0 is complete: a pull of the next step says so too.
  size_t Applied(uint32_t ranks) const {
    size_t first = journal.size();
    for (uint32_t r = 0; r < ranks; ++r) {
      first = std::min({first, At(r, "complete", 0), At(r, "pull", 1)});
    }
    return first;
  }
};

// Slice k of a step is rank k mod ranks'.
std::vector<uint32_t> Owners(const Story& run) {
  std::vector<uint32_t> owner(4);
  for (uint32_t k = 0; k < 4; ++k) owner[k] = k % run.ranks;
  return owner;
}

// The last slice of every second step has no samples.
std::vector<SliceToRead> SlicesOf(uint32_t rank, const Story& run) {
  std::vector<SliceToRead> slices;
  for (Step step = 0; step <= run.steps; ++step) {
    const uint32_t last = step % 2 == 1 ? 0 : 4;
    for (SliceIndex k = rank; k < 4; k += run.ranks) {
      slices.push_back({step, k, k == 3 ? last : 4, 12 + last});
    }
  }
  return slices;
}

Status Steps(ScriptedRank& rank, const Story& run) {
  TrainProgress progress;
  Stages stages{progress,  *rank.puller, *rank.client,         *rank.engine,
                rank.team, run.overlap,  rank.setting.timeline};
  const std::vector<uint32_t> owner = Owners(run);
  if (run.overlap) DT_TRY_STATUS(BeginStep(0, stages));
  for (Step step = 0; step < run.steps; ++step) {
    const uint32_t samples = step % 2 == 1 ? 12 : 16;
    DT_TRY_STATUS(TrainStep({.step = step, .samples = samples, .slice_owner = owner}, stages));
  }
  return rank.engine->FetchParameters();
}

Outcome Play(const Story& run) {
  Journal journal;
  ScriptedServer server(WireTablesOf(ScriptedJob({})), journal);
  std::atomic<bool> over = false;  // A rank has ended with an error, and with it the job.
  auto meshes = PlainMeshes(run.ranks,
                            [&over] { return over ? Cancelled("the job has ended") : OkStatus(); });
  std::vector<std::unique_ptr<ScriptedRank>> ranks;
  for (uint32_t r = 0; r < run.ranks; ++r) {
    const RankSetting setting{.overlap = run.overlap,
                              .read = SlicesOf(r, run),
                              .timeline = r == 0 ? run.timeline : nullptr};
    ranks.push_back(std::make_unique<ScriptedRank>(setting, std::move(meshes[r]), server, journal));
  }
  ranks[0]->script.FailAt(run.fail_at, run.fault);
  Outcome outcome{.ends = std::vector<Status>(run.ranks),
                  .values = std::vector<std::string>(run.ranks)};
  std::vector<std::jthread> threads;
  for (uint32_t r = 0; r < run.ranks; ++r) {
    threads.emplace_back([&, r] {
      outcome.ends[r] = Steps(*ranks[r], run);
      if (!outcome.ends[r].ok()) over = true;
    });
  }
  threads.clear();
  for (uint32_t r = 0; r < run.ranks; ++r) {
    if (outcome.ends[r].ok()) outcome.values[r] = ranks[r]->engine->parameters().Checksum();
  }
  outcome.journal = journal.all();
  outcome.points = ranks[0]->script.reached();
  outcome.pushes = server.pushes();
  return outcome;
}

// Everybody can apply step 0: all that it needs has been sent and acknowledged, and every rank has
// the sums, before the servers first hear that it is complete.
void ExpectEverybodyCan(const Outcome& outcome, const Story& run) {
  const size_t applied = outcome.Applied(run.ranks);
  for (uint32_t r = 0; r < run.ranks; ++r) {
    const size_t barrier = outcome.At(r, "enter barrier");
    EXPECT_LT(barrier, applied) << "rank " << r << " is not past its barrier";
    EXPECT_LT(outcome.At(r, "leave exchange"), barrier) << "sums of rank " << r;
    EXPECT_LT(outcome.At(r, "leave exchange", 0, 1), barrier) << "losses of rank " << r;
    for (SliceIndex k = r; k < 4; k += run.ranks) {
      EXPECT_LT(outcome.At(r, "acknowledged", 0, k), barrier) << "slice " << k;
    }
  }
}

// Makes every call of rank 0 fail in turn, and looks at what comes of it.
void TryAllPoints(Story run, const std::function<void(const Outcome&, const Outcome&)>& check) {
  const Outcome whole = Play(run);
  ASSERT_TRUE(whole.ends[0].ok()) << whole.ends[0];
  ASSERT_GT(whole.points[0].size(), 15u);
  ASSERT_GE(whole.points[1].size(), run.ranks > 1 ? 4u : 2u);
  for (const Side side : {Side::kTrain, Side::kExchange}) {
    const std::vector<std::string>& points = whole.points[static_cast<size_t>(side)];
    for (size_t point = 0; point < points.size(); ++point) {
      for (const Fault fault : {Fault::kOnce, Fault::kForGood}) {
        SCOPED_TRACE(fmt::format("{} at point {}, {}, {} overlap",
                                 fault == Fault::kOnce ? "fails once" : "dies", point,
                                 points[point], run.overlap ? "with" : "without"));
        run.fail_at = {side, point};
        run.fault = fault;
        check(whole, Play(run));
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(TrainStep, ARankThatFailsAnywhereLeavesAStepThatNobodyOrEverybodyApplies) {
  for (const bool overlap : {true, false}) {
    std::set<bool> seen;  // Applied or not.
    const Story run{.overlap = overlap};
    TryAllPoints(run, [&](const Outcome& whole, const Outcome& failed) {
      const bool applied = failed.Applied(2) < failed.journal.size();
      seen.insert(applied);
      if (applied) ExpectEverybodyCan(failed, run);
      // Who got through has applied it, as if nothing had happened.
      for (uint32_t r = 0; r < 2; ++r) {
        if (!failed.ends[r].ok()) continue;
        EXPECT_TRUE(applied) << r;
        EXPECT_EQ(failed.values[r], whole.values[r]) << r;
      }
      if (applied) {
        EXPECT_TRUE(failed.ends[1].ok()) << failed.ends[1];
      }
      for (const auto& [slice, push] : failed.pushes) {
        EXPECT_EQ(push, whole.pushes.at(slice)) << "slice " << std::get<1>(slice);
      }
    });
    EXPECT_EQ(seen.size(), 2u) << "both ends were met";
  }
}

// A single rank: there is nobody that could go on with its sums, and nobody to wait for.
TEST(TrainStep, ARankAloneThatFailsHasPushedAllOrNotToldTheServers) {
  for (const bool overlap : {true, false}) {
    const Story run{.ranks = 1, .overlap = overlap};
    TryAllPoints(run, [&](const Outcome& whole, const Outcome& failed) {
      const size_t applied = failed.Applied(1);
      if (applied < failed.journal.size()) {
        for (SliceIndex k = 0; k < 4; ++k) {
          EXPECT_LT(failed.At(0, "acknowledged", 0, k), applied) << "slice " << k;
        }
      }
      if (failed.ends[0].ok()) {
        EXPECT_EQ(failed.values, whole.values);
      }
    });
  }
}

TEST(TrainStep, AMessageThatIsLostIsSentAgainAndAnyOtherFailureIsTheStepsError) {
  const Outcome whole = Play({});
  const std::vector<std::string>& points = whole.points[0];
  const auto barrier = std::ranges::find(points, "enter barrier");
  for (size_t point = 0; point < static_cast<size_t>(barrier - points.begin()); ++point) {
    const std::string& name = points[point];
    SCOPED_TRACE(fmt::format("point {}, {}", point, name));
    const Outcome failed = Play({.fail_at = {Side::kTrain, point}});
    if (name == "send" || name == "sent") {
      EXPECT_TRUE(failed.ends[0].ok()) << failed.ends[0];
      EXPECT_EQ(failed.pushes, whole.pushes);
      continue;
    }
    const std::string want = name == "read"   ? "column label of sample 4096 is 7"
                             : name == "rows" ? "is not finite at step 0"
                                              : "the script ends at point";
    EXPECT_THAT(ToText(failed.ends[0]), HasSubstr(want));
  }
}

TEST(TrainStep, OneRankOrTwoWithOverlapOrWithoutPushAndUpdateTheSameBits) {
  const Outcome first = Play({.ranks = 1, .overlap = true, .steps = 3});
  ASSERT_TRUE(first.ends[0].ok()) << first.ends[0];
  EXPECT_EQ(first.pushes.size(), 3u * 4);
  for (const Story& run : {Story{.ranks = 1, .overlap = false, .steps = 3},
                           Story{.ranks = 2, .overlap = true, .steps = 3},
                           Story{.ranks = 2, .overlap = false, .steps = 3}}) {
    const Outcome other = Play(run);
    EXPECT_EQ(other.pushes, first.pushes);
    for (const std::string& values : other.values) EXPECT_EQ(values, first.values[0]);
  }
}

// Server and ranks see step n+1 only when every rank is past the barrier of step n.
TEST(TrainStep, NoRankPullsForTheNextStepBeforeEveryBarrier) {
  for (const bool overlap : {true, false}) {
    const Outcome outcome = Play({.overlap = overlap, .steps = 4});
    std::map<uint32_t, Step> barriers;
    size_t pulls = 0;
    for (const Happening& h : outcome.journal) {
      if (h.what == "enter barrier") ++barriers[h.rank];
      if (h.what != "pull" && h.what != "complete") continue;
      const Step needed = h.what == "pull" ? h.step : h.step + 1;
      EXPECT_GE(std::min(barriers[0], barriers[1]), needed) << h.what << " of step " << h.step;
      ++pulls;
    }
    // 14 slices with samples and 8 ends of steps; with overlap the slices of the next step.
    EXPECT_EQ(pulls, overlap ? 24u : 22u);
  }
}

// The stages of one step in the order in which they begin.
std::vector<std::string> StagesOf(const Story& run) {
  Timeline timeline({.first = 0, .last = 0});
  Story recorded = run;
  recorded.timeline = &timeline;
  const Outcome outcome = Play(recorded);
  EXPECT_TRUE(outcome.ends[0].ok()) << outcome.ends[0];
  const std::set<std::string_view> wanted = {"the exchange", "acknowledgements", "barrier",
                                             "complete", "update"};
  std::vector<std::string> stages;
  for (const RecordedSpan& span : timeline.Spans()) {
    if (wanted.contains(span.label.name)) stages.emplace_back(span.label.name);
  }
  return stages;
}

TEST(TrainStep, TheBarrierComesBehindTheSumsUnlessTheRankIsAlone) {
  EXPECT_THAT(StagesOf({.ranks = 2}),
              ElementsAre("the exchange", "acknowledgements", "barrier", "complete", "update"));
  EXPECT_THAT(StagesOf({.ranks = 1}),
              ElementsAre("acknowledgements", "barrier", "complete", "the exchange", "update"));
}

TEST(TrainStep, WithoutOverlapPushesAreAcknowledgedOneByOneAndTheUpdateComesLast) {
  for (const uint32_t ranks : {1u, 2u}) {
    std::vector<std::string> want(4 / ranks, "acknowledgements");
    for (const char* stage :
         {"the exchange", "acknowledgements", "barrier", "complete", "update"}) {
      want.emplace_back(stage);
    }
    EXPECT_EQ(StagesOf({.ranks = ranks, .overlap = false}), want);
  }
}

}  // namespace
}  // namespace dt::worker
