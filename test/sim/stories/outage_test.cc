// Goal: workers go on while the scheduler is away, and yet a stop request is soon obeyed, though
// many orders are out, and also while the workers change. Method: the simulation of
// cluster_test.cc, with jobs of many steps at whose end alone something else than training is due.
// The workers' steps are looked at every few milliseconds.
#include <gtest/gtest.h>

#include "test/sim/stories/story.h"
#include "test/support/sim_seeds.h"

namespace dt::sim {
namespace {

constexpr uint64_t kSeeds = 10;  // Of each story.
// On a slow network, so that there are not too many steps.
constexpr Misfortunes kSlow = {.network = {.delay_max = milliseconds(60)}, .lasting = seconds(300)};
constexpr Duration kOutage = seconds(20);

// The longest time in which the slowest worker did no step.
class StepWatch {
 public:
  explicit StepWatch(Cluster& cluster) : cluster_(cluster) {}

  void Begin() {
    steps_ = begin_steps_ = StepsDone();
    changed_ = begin_ = Now();
    longest_ = Duration::zero();
    watches_ = true;
    Look();
  }
  void End() {
    longest_ = std::max(longest_, Now() - changed_);
    end_ = Now();
    watches_ = false;
  }
  Duration longest() const { return longest_; }
  Step steps() const { return steps_ - begin_steps_; }
  Duration mean() const { return (end_ - begin_) / std::max<Step>(1, steps()); }

 private:
  TimePoint Now() const { return cluster_.world().Now(); }
  Step StepsDone() { return std::min(cluster_.worker(0)->step(), cluster_.worker(1)->step()); }
  void Look() {
    if (!watches_) return;
    if (StepsDone() != steps_) {
      longest_ = std::max(longest_, Now() - changed_);
      changed_ = Now();
      steps_ = StepsDone();
    }
    cluster_.world().After(milliseconds(5), [this] { Look(); });
  }

  Cluster& cluster_;
  bool watches_ = false;
  Step begin_steps_ = 0, steps_ = 0;
  TimePoint begin_{}, changed_{}, end_{};
  Duration longest_{};
};

TEST(Outage, TheSchedulersStopsNobody) {
  for (const Mode mode : {Mode::kManySteps, Mode::kBoundedManySteps}) {
    for (const uint64_t seed : SimSeeds(kSeeds)) {
      SCOPED_TRACE(Repeat(seed));
      Story story(seed, JobOf(mode));
      Cluster& cluster = story.cluster();
      World& world = cluster.world();
      StepWatch before(cluster), away(cluster);
      const Duration killed = seconds(12) + world.UpTo(seconds(4));
      world.After(killed - seconds(8), [&] { before.Begin(); });
      world.After(killed, [&] {
        before.End();
        cluster.scheduler().Kill();
        away.Begin();
      });
      world.After(killed + kOutage, [&] {
        away.End();
        cluster.RestartScheduler();
      });
      ExpectAsPromised(mode, kSlow, story);
      // Asynchronous steps come in bursts, as workers share orders out by parts.
      const Duration usual = IsSynchronous(mode) ? before.mean() : before.longest();
      EXPECT_LE(away.longest(), 2 * usual);
      EXPECT_EQ(story.tally().restarts, 0u);
      if (HasFailure()) return;
    }
  }
}

// A minute's training is out. Two orders of 0.4 s are kept, and the worker that is behind does what
// the other one has begun.
TEST(Outage, AStopIsSoonObeyed) {
  for (const uint64_t seed : SimSeeds(kSeeds)) {
    SCOPED_TRACE(Repeat(seed));
    Story story(seed, JobOf(Mode::kManySteps));
    World& world = story.cluster().world();
    const Duration stopped = seconds(8) + world.UpTo(seconds(4));
    uint32_t restarts = 0;
    world.After(stopped, [&] { story.cluster().scheduler().RequestStop(); });
    world.After(stopped + seconds(10), [&] { restarts = story.tally().restarts; });
    ExpectAsPromised(Mode::kManySteps, kSlow, story);
    EXPECT_EQ(restarts, 1u) << "it has ended, and was resumed";
  }
}

// Asks for a stop up to 0.2 s after the next view began to form.
void StopInTheNextView(Story& story, const std::function<void()>& on_stop) {
  Cluster& cluster = story.cluster();
  if (!cluster.scheduler().job().record().views.forming) {
    return cluster.world().After(milliseconds(5),
                                 [&story, on_stop] { StopInTheNextView(story, on_stop); });
  }
  cluster.world().After(cluster.world().UpTo(milliseconds(200)), [&cluster, on_stop] {
    cluster.scheduler().RequestStop();
    on_stop();
  });
}

// Orders are recalled a moment before or after the others begin the view without it. What each had
// in hand comes again in that view.
TEST(Outage, AStopIsSoonObeyedWhileAWorkerIsLost) {
  for (const uint64_t seed : SimSeeds(kSeeds)) {
    SCOPED_TRACE(Repeat(seed));
    Story story(seed, JobOf(Mode::kManyWorkersManySteps));
    World& world = story.cluster().world();
    uint32_t restarts = 0;
    world.After(seconds(8) + world.UpTo(seconds(4)), [&] {
      story.cluster().worker(3)->Kill();
      StopInTheNextView(
          story, [&] { world.After(seconds(10), [&] { restarts = story.tally().restarts; }); });
    });
    ExpectAsPromised(Mode::kManyWorkersManySteps, kSlow, story);
    EXPECT_EQ(restarts, 1u) << "it has ended, and was resumed";
    EXPECT_EQ(story.tally().in_the_way, 0u);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace dt::sim
