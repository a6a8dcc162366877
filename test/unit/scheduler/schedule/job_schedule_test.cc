// Goal: the sequence of orders of a training job. Method: each order is carried out at once and
// written down as text; training is given by its end only, however it is divided into orders.
#include "scheduler/schedule/job_schedule.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

ScheduleConfig Config() {
  ScheduleConfig config;
  config.train_rows = 95;
  config.batch_size = 10;  // 10 steps per epoch, the last one shorter.
  config.valid_rows = 20;
  config.test_rows = 20;
  config.epochs = 3;
  config.losses = {"click", "rating"};
  config.learning_rate = 0.1;
  return config;
}

// Results with mean losses of 0.5 and 2.
Trained Results(uint64_t samples, double seconds) {
  const auto n = static_cast<double>(samples);
  return {samples, {0.5 * n, 2 * n}, {0.75, 3}, seconds};
}

struct Story {
  std::string text;
  ScheduleState saved;  // The state at the last save.
};

class Player {
 public:
  Player(JobSchedule& schedule, std::vector<double> auc, double step_seconds)
      : schedule_(schedule), auc_(std::move(auc)), step_seconds_(step_seconds) {}

  // Plays until `stop_at` is trained; then requests a stop.
  Story Play(Step stop_at = ~Step{0}) {
    for (int i = 0; i < 10000 && !schedule_.finished() && !schedule_.interrupted(); ++i) {
      while (std::optional<schedule::Order> order = schedule_.Next()) out_.push_back(*order);
      if (out_.empty()) break;
      const schedule::Order order = out_.front();
      out_.erase(out_.begin());
      std::visit([&](const auto& o) { Carry(o); }, order);
      if (schedule_.state().step >= stop_at) schedule_.RequestStop();
    }
    Flush();
    if (schedule_.finished()) story_.text += "finished";
    if (schedule_.interrupted()) story_.text += "interrupted";
    return story_;
  }

 private:
  void Carry(const schedule::Train& o) {
    EXPECT_EQ(o.first_step, schedule_.state().step);
    EXPECT_EQ(o.epoch_first_step, o.epoch * 10);
    EXPECT_EQ((o.end_step - 1) / 10, o.epoch) << "an order lies within an epoch";
    rate_ = o.lr_scale;
    const uint64_t steps = o.end_step - o.first_step;
    schedule_.OnTrained(o.end_step,
                        Results(steps * 10, static_cast<double>(steps) * step_seconds_));
    trained_ = o.end_step;
  }
  void Carry(const schedule::Evaluate& o) {
    Write(o.test ? fmt::format("test@{}", o.step) : fmt::format("valid@{}", o.step));
    Metrics metrics;
    metrics.auc = next_ < auc_.size() ? auc_[next_++] : 0.5;
    schedule_.OnEvaluated({metrics});
  }
  void Carry(const schedule::Save& o) {
    Write(fmt::format("save@{}{}", o.step, o.best ? "*" : ""));
    schedule_.OnDone();
    story_.saved = schedule_.state();
  }
  void Carry(const schedule::Restore& o) {
    Write(fmt::format("restore@{}", o.step));
    schedule_.OnDone();
  }
  void Carry(const schedule::Finish&) {
    Flush();
    schedule_.OnDone();
  }
  void Flush() {
    if (!trained_.has_value()) return;
    story_.text += rate_ == 1 ? fmt::format("train..{} ", *trained_)
                              : fmt::format("train..{}x{} ", *trained_, rate_);
    trained_.reset();
  }
  void Write(const std::string& what) {
    Flush();
    story_.text += what + " ";
  }

  JobSchedule& schedule_;
  const std::vector<double> auc_;
  const double step_seconds_;
  size_t next_ = 0;
  float rate_ = 1;
  std::optional<Step> trained_;
  std::vector<schedule::Order> out_;
  Story story_;
};

std::string Told(const ScheduleConfig& config, std::vector<double> auc,
                 double step_seconds = 0.01) {
  ScheduleRecord record = ScheduleFrom(config, {});
  JobSchedule schedule(config, record);
  return Player(schedule, std::move(auc), step_seconds).Play().text;
}

// Carries out training orders up to the first order of type `Order`.
template <class Order>
Order Until(JobSchedule& schedule) {
  for (;;) {
    std::optional<schedule::Order> order = schedule.Next();
    EXPECT_TRUE(order.has_value());
    if (!order.has_value()) return {};
    if (auto* const wanted = std::get_if<Order>(&*order)) return *wanted;
    const auto& train = std::get<schedule::Train>(*order);
    schedule.OnTrained(train.end_step, Results(10, 0.01));
  }
}

TEST(JobSchedule, TrainingGoesOnWhileACheckpointIsWrittenUpToTheNext) {
  ScheduleConfig config = Config();
  config.valid_rows = config.test_rows = 0;
  config.epochs = 2;
  config.save_every = 8;
  ScheduleRecord record = ScheduleFrom(config, {});
  JobSchedule schedule(config, record);
  EXPECT_EQ(Until<schedule::Save>(schedule).step, 8u);
  schedule.OnCut();
  EXPECT_EQ(Until<schedule::Train>(schedule).first_step, 8u);
  schedule.OnTrained(10, Results(20, 0.01));
  while (std::optional<schedule::Order> order = schedule.Next()) {
    const Step end = std::get<schedule::Train>(*order).end_step;
    schedule.OnTrained(end, Results(10, 0.01));
  }
  EXPECT_EQ(schedule.state().step, 16u);  // The next checkpoint is due at this step.
  schedule.OnWritten();
  EXPECT_EQ(Until<schedule::Save>(schedule).step, 16u);
  schedule.OnCut();
  EXPECT_FALSE(schedule.interrupted());
  EXPECT_TRUE(schedule.OnAbandoned());
  // Nothing was trained after the abandoned checkpoint.
  EXPECT_EQ(Until<schedule::Save>(schedule).step, 16u);
}

// The rows that servers report at the end are those of a checkpoint, so it does not matter if
// servers were lost and their logs lack their ends.
TEST(JobSchedule, TheEndComesWhenAllThatWasTrainedIsInAWrittenCheckpoint) {
  ScheduleConfig config = Config();
  config.valid_rows = config.test_rows = 0;
  config.epochs = 1;
  ScheduleRecord record = ScheduleFrom(config, {});
  JobSchedule schedule(config, record);
  for (const bool lost : {true, true, false}) {
    EXPECT_EQ(Until<schedule::Save>(schedule).step, 10u);
    schedule.OnCut();
    EXPECT_FALSE(schedule.Next().has_value()) << "it is still being written";
    if (!lost) schedule.OnWritten();
    EXPECT_TRUE(!lost || schedule.OnAbandoned());
  }
  const auto end = schedule.Next();
  EXPECT_TRUE(end.has_value() && std::holds_alternative<schedule::Finish>(*end));
}

TEST(JobSchedule, ACheckpointThatIsAskedForComesAtTheNextBoundary) {
  ScheduleConfig config = Config();
  config.epochs = 1;
  ScheduleRecord record = ScheduleFrom(config, {});
  JobSchedule schedule(config, record);
  ASSERT_TRUE(schedule.Next().has_value());
  ASSERT_TRUE(schedule.Next().has_value());
  schedule.RequestSave();
  EXPECT_FALSE(schedule.Next().has_value());
  schedule.OnTrained(4, Results(40, 1));
  EXPECT_FALSE(schedule.Next().has_value()) << "what is out comes first";
  schedule.OnTrained(8, Results(40, 1));
  const auto save = schedule.Next();
  ASSERT_TRUE(save.has_value() && std::holds_alternative<schedule::Save>(*save));
  EXPECT_EQ(std::get<schedule::Save>(*save).step, 8u);
  schedule.OnDone();
  schedule.RequestSave();  // Nothing was done since the last save.
  EXPECT_TRUE(std::holds_alternative<schedule::Train>(*schedule.Next()));
}

TEST(JobSchedule, PlainTraining) {
  ScheduleConfig config = Config();
  config.epochs = 2;
  EXPECT_EQ(Told(config, {}), "train..10 valid@10 train..20 valid@20 save@20 test@20 finished");
  config.valid_rows = config.test_rows = 0;
  EXPECT_EQ(Told(config, {}), "train..20 save@20 finished");
}

TEST(JobSchedule, SavesAndEvaluatesAtTheirSteps) {
  ScheduleConfig config = Config();
  config.epochs = 2;
  config.save_every = 8;
  config.evaluate_every = 12;
  EXPECT_EQ(
      Told(config, {}),
      "train..8 save@8 train..12 valid@12 train..16 save@16 train..20 valid@20 save@20 test@20 "
      "finished");
}

// The end may be in the middle of an epoch; a job with a larger limit continues from there.
TEST(JobSchedule, MaxStepsEndsTheJob) {
  ScheduleConfig config = Config();
  config.max_steps = 13;
  ScheduleRecord first_record = ScheduleFrom(config, {});
  JobSchedule first(config, first_record);
  const Story story = Player(first, {}, 0.01).Play();
  EXPECT_EQ(story.text, "train..10 valid@10 train..13 valid@13 save@13 test@13 finished");
  EXPECT_TRUE(first.at_end());
  config.max_steps = 27;
  ScheduleRecord second_record = ScheduleFrom(config, story.saved);
  JobSchedule second(config, second_record);
  EXPECT_EQ(Player(second, {}, 0.01).Play().text,
            "train..20 valid@20 train..27 valid@27 save@27 test@27 finished");
  config.max_steps = 31;  // This is more than all epochs have.
  EXPECT_EQ(config.steps(), 30u);
}

TEST(JobSchedule, HistoryTellsTheRateOfPlateauAndSchedule) {
  ScheduleConfig config = Config();
  config.schedule = {.curve = RateCurve::kStep, .every = 15, .factor = 0.1f};
  config.plateau = PlateauConfig{"valid.auc", 0.5f, 0, 0};
  ScheduleRecord record = ScheduleFrom(config, {});
  JobSchedule schedule(config, record);
  Player(schedule, {0.6, 0.5, 0.4}, 0.01).Play();
  std::vector<float> rates;
  for (const auto& evaluation : schedule.state().history) rates.push_back(evaluation.rate_scale);
  EXPECT_EQ(rates, (std::vector<float>{1, 0.1f, 0.05f}));
}

TEST(JobSchedule, KeepsTheBestAndRestoresIt) {
  ScheduleConfig config = Config();
  config.epochs = 10;
  config.plateau = PlateauConfig{"valid.auc", 0.5f, 0, 0};
  config.early_stop = EarlyStopConfig{"valid.auc", 2};
  EXPECT_EQ(Told(config, {0.6, 0.7, 0.65, 0.65}),
            "train..10 valid@10 save@10* train..20 valid@20 save@20* train..30 valid@30 "
            "train..40x0.5 valid@40 save@40 restore@20 test@20 finished");
}

TEST(JobSchedule, BestAtTheEndNeedsNoRestore) {
  ScheduleConfig config = Config();
  config.epochs = 2;
  config.early_stop = EarlyStopConfig{"valid.auc", 2};
  EXPECT_EQ(Told(config, {0.6, 0.7}),
            "train..10 valid@10 save@10* train..20 valid@20 save@20* test@20 finished");
}

TEST(JobSchedule, ThePaceDoesNotChangeWhatHappens) {
  ScheduleConfig config = Config();
  config.save_every = 7;
  EXPECT_EQ(Told(config, {}, 0.0001), Told(config, {}, 3.0));
}

TEST(JobSchedule, StopsAtABoundaryWithACheckpoint) {
  ScheduleConfig config = Config();
  config.save_every = 100;
  ScheduleRecord record = ScheduleFrom(config, {});
  JobSchedule schedule(config, record);
  // One order of one step is still being carried out when the stop is requested.
  EXPECT_EQ(Player(schedule, {}, 3.0).Play(13).text,
            "train..10 valid@10 train..14 save@14 interrupted");
  EXPECT_EQ(schedule.state().step, 14u);
  config.save_every = 0;
  ScheduleRecord unsaved_record = ScheduleFrom(config, {});
  JobSchedule unsaved(config, unsaved_record);
  EXPECT_EQ(Player(unsaved, {}, 3.0).Play(11).text, "train..10 valid@10 train..12 interrupted");
}

TEST(JobSchedule, SlowStepsAreOrderedOneByOne) {
  ScheduleConfig config = Config();
  ScheduleRecord record = ScheduleFrom(config, {});
  JobSchedule schedule(config, record);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(schedule.Next().has_value());
  EXPECT_FALSE(schedule.Next().has_value()) << "two are out";
  schedule.OnTrained(4, Results(40, 40));
  const auto next = std::get<schedule::Train>(*schedule.Next());
  EXPECT_EQ(next.first_step, 8u);
  EXPECT_EQ(next.end_step, 9u);
}

// A job that is stopped anywhere and resumed from the checkpoint has the same orders, decisions and
// metrics.
TEST(JobSchedule, ResumedEqualsUninterrupted) {
  ScheduleConfig config = Config();
  config.save_every = 7;
  config.early_stop = EarlyStopConfig{"valid.auc", 3};
  config.plateau = PlateauConfig{"valid.auc", 0.5f, 0, 0};
  const std::vector<double> auc = {0.6, 0.7, 0.65};
  ScheduleRecord whole_record = ScheduleFrom(config, {});
  JobSchedule whole(config, whole_record);
  Player(whole, auc, 0.01).Play();
  for (Step stop = 1; stop < 30; ++stop) {
    ScheduleRecord first_record = ScheduleFrom(config, {});
    JobSchedule first(config, first_record);
    const Story story = Player(first, auc, 0.1).Play(stop);
    ASSERT_TRUE(first.interrupted()) << stop;
    ASSERT_EQ(story.saved.step, first.state().step) << stop;
    ScheduleRecord second_record = ScheduleFrom(config, story.saved);
    JobSchedule second(config, second_record);
    const size_t seen = story.saved.history.size();
    Player(second, {auc.begin() + static_cast<ptrdiff_t>(seen), auc.end()}, 0.01).Play();
    ASSERT_TRUE(second.finished());
    EXPECT_EQ(second.state().decisions, whole.state().decisions) << stop;
    EXPECT_EQ(second.state().samples, whole.state().samples);
    EXPECT_EQ(second.train(), whole.train());
    EXPECT_EQ(second.state().history.size(), whole.state().history.size());
  }
}

// The checkpoint of a stop at an epoch's end is written before the evaluation that makes it the
// best. It must be written again as the best; otherwise it could be deleted before the job returns
// to it.
TEST(JobSchedule, ABoundaryThatWasStoppedAtIsKeptAsTheBest) {
  ScheduleConfig config = Config();
  config.save_every = 100;
  config.early_stop = EarlyStopConfig{"valid.auc", 2};
  ScheduleRecord first_record = ScheduleFrom(config, {});
  JobSchedule first(config, first_record);
  const Story story = Player(first, {}, 0.01).Play(10);
  EXPECT_EQ(story.text, "train..10 save@10 interrupted");
  ScheduleRecord second_record = ScheduleFrom(config, story.saved);
  JobSchedule second(config, second_record);
  EXPECT_EQ(Player(second, {0.7, 0.6, 0.6}, 0.01).Play().text,
            "valid@10 save@10* train..20 valid@20 train..30 valid@30 save@30 restore@10 test@10 "
            "finished");
}

TEST(JobSchedule, EachLossHasItsMeanOverTheEpoch) {
  ScheduleRecord record = ScheduleFrom(Config(), {});
  JobSchedule schedule(Config(), record);
  // Before the first step there is no mean, rather than zero.
  EXPECT_EQ(schedule.train(), LossMeans{});
  Player(schedule, {}, 0.01).Play();
  const LossMeans want = {{"click", 0.5}, {"rating", 2}};
  EXPECT_EQ(schedule.train(), want);
  EXPECT_EQ(schedule.state().history.back().train, want);
  EXPECT_EQ(schedule.state().history.back().learning_rate, 0.1);
  EXPECT_EQ(schedule.state().epoch_samples, 100u);
  EXPECT_EQ(schedule.state().samples, 300u);
}

TEST(JobSchedule, TheFirstStepsLossesArePutAsideAndSurviveAResumption) {
  ScheduleRecord record = ScheduleFrom(Config(), {});
  JobSchedule schedule(Config(), record);
  EXPECT_FALSE(schedule.FirstLossOf("rating").has_value());
  ASSERT_TRUE(schedule.Next().has_value());
  schedule.OnTrained(4, Results(40, 1));
  ASSERT_TRUE(schedule.Next().has_value());
  Trained later = Results(10, 1);
  later.first_losses = {9, 9};
  schedule.OnTrained(5, later);
  EXPECT_EQ(schedule.FirstLossOf("rating"), 3);
  ScheduleRecord again = ScheduleFrom(Config(), schedule.state());
  EXPECT_EQ(JobSchedule(Config(), again).FirstLossOf("rating"), 3);
  EXPECT_FALSE(schedule.FirstLossOf("other").has_value());
}

TEST(JobSchedule, TheCurveBeginsWithTheFirstOrder) {
  ScheduleRecord record = ScheduleFrom(Config(), {});
  JobSchedule schedule(Config(), record);
  ASSERT_TRUE(schedule.Next().has_value());
  schedule.OnTrained(4, Results(40, 2));
  ASSERT_EQ(schedule.state().curve.size(), 1u);
  const JobResult::CurvePoint& point = schedule.state().curve[0];
  EXPECT_EQ(point.step, 4u);
  EXPECT_EQ(point.seconds, 2);
  EXPECT_EQ(point.samples, 40u);
  EXPECT_EQ(point.learning_rate, 0.1);
  EXPECT_EQ(point.losses, (LossMeans{{"click", 0.5}, {"rating", 2}}));
}

}  // namespace
}  // namespace dt::scheduler
