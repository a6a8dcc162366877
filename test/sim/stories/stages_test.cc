// Goal: a worker may die at every stage of a step and of an order, and while the workers change:
// the others go on, and the job comes to the end of one that nothing happened to. Method: as in
// cluster_test.cc; one worker dies at a failpoint.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "test/sim/stories/stories.h"

namespace dt::sim {
namespace {

constexpr int kSeeds = 6;  // For each stage; with each, another worker dies in another step.

// Decides which workers die: at each place that was added, one, which the seed chooses.
class Deaths {
 public:
  Deaths(Cluster& cluster, uint64_t seed) : cluster_(cluster), seed_(seed) {
    cluster.SetFailpoint([this](uint32_t number, std::string_view place, uint64_t at) {
      return DiesAt(number, place, at);
    });
  }
  // One worker dies at this place, not before step or view `from`.
  void Add(std::string_view place, uint64_t from = 0) { places_.push_back({place, from}); }
  size_t died() const { return died_.size(); }

 private:
  struct Place {
    std::string_view name;
    uint64_t from = 0;
    bool reached = false;
  };
  bool DiesAt(uint32_t number, std::string_view place, uint64_t at) {
    for (Place& where : places_) {
      if (where.reached || where.name != place || at < where.from) continue;
      const uint32_t last = cluster_.job().cluster.servers + cluster_.job().cluster.workers;
      const uint64_t chosen = last - (seed_ + died_.size()) % cluster_.job().cluster.workers;
      const bool any = place == "share state" || place == "take state" || place == "write";
      if ((!any && number != chosen) || died_.contains(number)) continue;
      where.reached = true;
      died_.insert(number);
      return true;
    }
    return false;
  }

  Cluster& cluster_;
  const uint64_t seed_;
  std::vector<Place> places_;
  std::set<uint32_t> died_;
};

struct Stage {
  std::string_view place;
  uint64_t from = 0;
};

// Tells stories in which workers die at these places, one at each. Returns how many died in all.
size_t TellDeaths(Mode mode, std::initializer_list<Stage> stages, const Misfortunes& misfortunes) {
  size_t died = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Story story(seed, JobOf(mode));
    Deaths deaths(story.cluster(), seed);
    for (const Stage& stage : stages) deaths.Add(stage.place, stage.from + seed % 3);
    ExpectAsPromised(mode, misfortunes, story);
    EXPECT_EQ(story.tally().restarts, 0U) << "it has ended, and was resumed";
    died += deaths.died();
    if (testing::Test::HasFailure()) return died;
  }
  return died;
}

class AtStage : public testing::TestWithParam<Stage> {};

std::string NameOfStage(const testing::TestParamInfo<Stage>& of) {
  return std::string(of.param.place);
}

TEST_P(AtStage, AWorkerDies) {
  const Stage& stage = GetParam();
  EXPECT_GE(TellDeaths(Mode::kManyWorkers, {stage}, {.network = {.delay_max = milliseconds(20)}}),
            size_t{kSeeds});
}

// Places of a step, and of orders that are given after steps: 6 in an epoch, saved after 5 and at
// the end.
INSTANTIATE_TEST_SUITE_P(Step, AtStage,
                         testing::Values(Stage{"pull", 1}, Stage{"slice", 1}, Stage{"push", 1},
                                         Stage{"pushed", 1}, Stage{"exchange", 1}, Stage{"join", 1},
                                         Stage{"barrier", 1}, Stage{"complete", 1},
                                         Stage{"update", 1}, Stage{"updated", 1}),
                         NameOfStage);
INSTANTIATE_TEST_SUITE_P(Order, AtStage,
                         testing::Values(Stage{"train"}, Stage{"evaluate"}, Stage{"save"},
                                         Stage{"write"}, Stage{"finish"}, Stage{"done", 3}),
                         NameOfStage);

TEST(Stages, AnotherDiesWhileAViewIsFormed) {
  EXPECT_GE(TellDeaths(Mode::kManyWorkers, {{"push", 1}, {"view"}}, {}), size_t{2 * kSeeds});
  EXPECT_GE(TellDeaths(Mode::kManyWorkers, {{"barrier", 1}, {"view begins"}}, {}),
            size_t{2 * kSeeds});
}

// A spare takes the place of one that is lost, and it, or the one that gives it the values, dies.
TEST(Stages, OneDiesWhileAnotherJoins) {
  const Misfortunes joins = {.network = {.delay_max = milliseconds(20)},
                             .lasting = seconds(20),
                             .from_step = 1,
                             .add_worker = 1,
                             .changes_max = 1};
  for (const Stage dies : {Stage{"share state"}, Stage{"take state"}}) {
    EXPECT_GE(TellDeaths(Mode::kManyWorkers, {{"push", 4}, dies}, joins), size_t{2 * kSeeds});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace dt::sim
