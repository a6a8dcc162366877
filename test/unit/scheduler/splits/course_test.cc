// Goal: the sequence of orders of a job. Method: each order is carried out at once and written down
// as text; training is given by its boundaries only, however it is cut.
#include "scheduler/splits/course.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace dt::scheduler {
namespace {

CourseConfig Config() {
  CourseConfig config;
  config.train_rows = 95;
  config.batch_size = 10;  // 10 steps an epoch, the last one short.
  config.valid_rows = 20;
  config.test_rows = 20;
  config.epochs = 3;
  config.losses = {"click", "rating"};
  config.learning_rate = 0.1;
  return config;
}

// Means of 0.5 and 2.
Trained Results(uint64_t samples, double seconds) {
  const auto n = static_cast<double>(samples);
  return {samples, {0.5 * n, 2 * n}, {0.75, 3}, seconds};
}

struct Story {
  std::string text;
  CourseState saved;  // At the last save.
};

class Player {
 public:
  Player(Course& course, std::vector<double> auc, double step_seconds)
      : course_(course), auc_(std::move(auc)), step_seconds_(step_seconds) {}

  // Until `stop_at` is trained, where it asks to stop.
  Story Play(Step stop_at = ~Step{0}) {
    for (int i = 0; i < 10000 && !course_.finished() && !course_.interrupted(); ++i) {
      while (std::optional<course::Order> order = course_.Next()) out_.push_back(*order);
      if (out_.empty()) break;
      const course::Order order = out_.front();
      out_.erase(out_.begin());
      std::visit([&](const auto& o) { Carry(o); }, order);
      if (course_.state().step >= stop_at) course_.RequestStop();
    }
    Flush();
    if (course_.finished()) story_.text += "finished";
    if (course_.interrupted()) story_.text += "interrupted";
    return story_;
  }

 private:
  void Carry(const course::Train& o) {
    EXPECT_EQ(o.first_step, course_.state().step);
    EXPECT_EQ(o.epoch_first_step, o.epoch * 10);
    EXPECT_EQ((o.end_step - 1) / 10, o.epoch) << "an order lies within an epoch";
    rate_ = o.rate_scale;
    const uint64_t steps = o.end_step - o.first_step;
    course_.OnTrained(o.end_step, Results(steps * 10, static_cast<double>(steps) * step_seconds_));
    trained_ = o.end_step;
  }
  void Carry(const course::Evaluate& o) {
    Write(o.test ? fmt::format("test@{}", o.step) : fmt::format("valid@{}", o.step));
    Metrics metrics;
    metrics.auc = next_ < auc_.size() ? auc_[next_++] : 0.5;
    course_.OnEvaluated({metrics});
  }
  void Carry(const course::Save& o) {
    Write(fmt::format("save@{}{}", o.step, o.best ? "*" : ""));
    course_.OnDone();
    story_.saved = course_.state();
  }
  void Carry(const course::Restore& o) {
    Write(fmt::format("restore@{}", o.step));
    course_.OnDone();
  }
  void Carry(const course::Finish&) {
    Flush();
    course_.OnDone();
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

  Course& course_;
  const std::vector<double> auc_;
  const double step_seconds_;
  size_t next_ = 0;
  float rate_ = 1;
  std::optional<Step> trained_;
  std::vector<course::Order> out_;
  Story story_;
};

std::string Told(const CourseConfig& config, std::vector<double> auc, double step_seconds = 0.01) {
  Course course(config, {});
  return Player(course, std::move(auc), step_seconds).Play().text;
}

// The orders up to the one that goes out alone, or to none.
template <class Order>
Order Until(Course& course) {
  for (;;) {
    std::optional<course::Order> order = course.Next();
    EXPECT_TRUE(order.has_value());
    if (!order.has_value()) return {};
    if (auto* const wanted = std::get_if<Order>(&*order)) return *wanted;
    const auto& train = std::get<course::Train>(*order);
    course.OnTrained(train.end_step, Results(10, 0.01));
  }
}

TEST(Course, TrainingGoesOnWhileACheckpointIsWrittenUpToTheNext) {
  CourseConfig config = Config();
  config.valid_rows = config.test_rows = 0;
  config.epochs = 2;
  config.save_every = 8;
  Course course(config, {});
  EXPECT_EQ(Until<course::Save>(course).step, 8u);
  course.OnCut();
  EXPECT_EQ(Until<course::Train>(course).first_step, 8u);
  course.OnTrained(10, Results(20, 0.01));
  while (std::optional<course::Order> order = course.Next()) {
    const Step end = std::get<course::Train>(*order).end_step;
    course.OnTrained(end, Results(10, 0.01));
  }
  EXPECT_EQ(course.state().step, 16u);  // Where the next one is due.
  course.OnWritten();
  EXPECT_EQ(Until<course::Save>(course).step, 16u);
  course.OnCut();
  EXPECT_FALSE(course.interrupted());
  course.OnAbandoned();
  EXPECT_EQ(Until<course::Save>(course).step, 16u);  // Nothing was trained since.
}

// The rows that servers report at the end are those of a checkpoint, wherever servers were lost: a
// log that lacks its end then lacks nothing.
TEST(Course, TheEndComesWhenAllThatWasTrainedIsInAWrittenCheckpoint) {
  CourseConfig config = Config();
  config.valid_rows = config.test_rows = 0;
  config.epochs = 1;
  Course course(config, {});
  for (const bool lost : {true, true, false}) {
    EXPECT_EQ(Until<course::Save>(course).step, 10u);
    course.OnCut();
    EXPECT_FALSE(course.Next().has_value()) << "it is still being written";
    lost ? course.OnAbandoned() : course.OnWritten();
  }
  const auto end = course.Next();
  EXPECT_TRUE(end.has_value() && std::holds_alternative<course::Finish>(*end));
}

TEST(Course, ACheckpointThatIsAskedForComesAtTheNextBoundary) {
  CourseConfig config = Config();
  config.epochs = 1;
  Course course(config, {});
  ASSERT_TRUE(course.Next().has_value());
  ASSERT_TRUE(course.Next().has_value());
  course.RequestSave();
  EXPECT_FALSE(course.Next().has_value());
  course.OnTrained(4, Results(40, 1));
  EXPECT_FALSE(course.Next().has_value()) << "what is out comes first";
  course.OnTrained(8, Results(40, 1));
  const auto save = course.Next();
  ASSERT_TRUE(save.has_value() && std::holds_alternative<course::Save>(*save));
  EXPECT_EQ(std::get<course::Save>(*save).step, 8u);
  course.OnDone();
  course.RequestSave();  // Nothing was done since.
  EXPECT_TRUE(std::holds_alternative<course::Train>(*course.Next()));
}

TEST(Course, PlainTraining) {
  CourseConfig config = Config();
  config.epochs = 2;
  EXPECT_EQ(Told(config, {}), "train..10 valid@10 train..20 valid@20 save@20 test@20 finished");
  config.valid_rows = config.test_rows = 0;
  EXPECT_EQ(Told(config, {}), "train..20 save@20 finished");
}

TEST(Course, SavesAndEvaluatesAtTheirSteps) {
  CourseConfig config = Config();
  config.epochs = 2;
  config.save_every = 8;
  config.evaluate_every = 12;
  EXPECT_EQ(
      Told(config, {}),
      "train..8 save@8 train..12 valid@12 train..16 save@16 train..20 valid@20 save@20 test@20 "
      "finished");
}

// In the middle of an epoch, as at the end of the last one; a job that may do more goes on there.
TEST(Course, MaxStepsEndsTheJob) {
  CourseConfig config = Config();
  config.max_steps = 13;
  Course first(config, {});
  const Story story = Player(first, {}, 0.01).Play();
  EXPECT_EQ(story.text, "train..10 valid@10 train..13 valid@13 save@13 test@13 finished");
  EXPECT_TRUE(first.at_end());
  config.max_steps = 27;
  Course second(config, story.saved);
  EXPECT_EQ(Player(second, {}, 0.01).Play().text,
            "train..20 valid@20 train..27 valid@27 save@27 test@27 finished");
  config.max_steps = 31;  // More than its epochs have.
  EXPECT_EQ(config.steps(), 30u);
}

TEST(Course, HistoryTellsTheRateOfPlateauAndSchedule) {
  CourseConfig config = Config();
  config.schedule = {.curve = RateCurve::kStep, .every = 15, .factor = 0.1f};
  config.plateau = PlateauConfig{"valid.auc", 0.5f, 0, 0};
  Course course(config, {});
  Player(course, {0.6, 0.5, 0.4}, 0.01).Play();
  std::vector<float> rates;
  for (const auto& evaluation : course.state().history) rates.push_back(evaluation.rate_scale);
  EXPECT_EQ(rates, (std::vector<float>{1, 0.1f, 0.05f}));
}

TEST(Course, KeepsTheBestAndRestoresIt) {
  CourseConfig config = Config();
  config.epochs = 10;
  config.plateau = PlateauConfig{"valid.auc", 0.5f, 0, 0};
  config.early_stop = EarlyStopConfig{"valid.auc", 2};
  EXPECT_EQ(Told(config, {0.6, 0.7, 0.65, 0.65}),
            "train..10 valid@10 save@10* train..20 valid@20 save@20* train..30 valid@30 "
            "train..40x0.5 valid@40 save@40 restore@20 test@20 finished");
}

TEST(Course, BestAtTheEndNeedsNoRestore) {
  CourseConfig config = Config();
  config.epochs = 2;
  config.early_stop = EarlyStopConfig{"valid.auc", 2};
  EXPECT_EQ(Told(config, {0.6, 0.7}),
            "train..10 valid@10 save@10* train..20 valid@20 save@20* test@20 finished");
}

TEST(Course, ThePaceDoesNotChangeWhatHappens) {
  CourseConfig config = Config();
  config.save_every = 7;
  EXPECT_EQ(Told(config, {}, 0.0001), Told(config, {}, 3.0));
}

TEST(Course, StopsAtABoundaryWithACheckpoint) {
  CourseConfig config = Config();
  config.save_every = 100;
  Course course(config, {});
  // One order of one step is still out when the stop is asked for.
  EXPECT_EQ(Player(course, {}, 3.0).Play(13).text,
            "train..10 valid@10 train..14 save@14 interrupted");
  EXPECT_EQ(course.state().step, 14u);
  config.save_every = 0;
  Course unsaved(config, {});
  EXPECT_EQ(Player(unsaved, {}, 3.0).Play(11).text, "train..10 valid@10 train..12 interrupted");
}

TEST(Course, SlowStepsAreOrderedOneByOne) {
  CourseConfig config = Config();
  Course course(config, {});
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(course.Next().has_value());
  EXPECT_FALSE(course.Next().has_value()) << "two are out";
  course.OnTrained(4, Results(40, 40));
  const auto next = std::get<course::Train>(*course.Next());
  EXPECT_EQ(next.first_step, 8u);
  EXPECT_EQ(next.end_step, 9u);
}

// Stopping anywhere and going on from the checkpoint comes to the same orders, decisions and
// metrics.
TEST(Course, ResumedEqualsUninterrupted) {
  CourseConfig config = Config();
  config.save_every = 7;
  config.early_stop = EarlyStopConfig{"valid.auc", 3};
  config.plateau = PlateauConfig{"valid.auc", 0.5f, 0, 0};
  const std::vector<double> auc = {0.6, 0.7, 0.65};
  Course whole(config, {});
  Player(whole, auc, 0.01).Play();
  for (Step stop = 1; stop < 30; ++stop) {
    Course first(config, {});
    const Story story = Player(first, auc, 0.1).Play(stop);
    ASSERT_TRUE(first.interrupted()) << stop;
    ASSERT_EQ(story.saved.step, first.state().step) << stop;
    Course second(config, story.saved);
    const size_t seen = story.saved.history.size();
    Player(second, {auc.begin() + static_cast<ptrdiff_t>(seen), auc.end()}, 0.01).Play();
    ASSERT_TRUE(second.finished());
    EXPECT_EQ(second.state().decisions, whole.state().decisions) << stop;
    EXPECT_EQ(second.state().samples, whole.state().samples);
    EXPECT_EQ(second.train(), whole.train());
    EXPECT_EQ(second.state().history.size(), whole.state().history.size());
  }
}

// The checkpoint of a stop at an epoch's end was written before the evaluation that makes it the
// best: it is written again, as the best, or it could be gone when the job returns to it.
TEST(Course, ABoundaryThatWasStoppedAtIsKeptAsTheBest) {
  CourseConfig config = Config();
  config.save_every = 100;
  config.early_stop = EarlyStopConfig{"valid.auc", 2};
  Course first(config, {});
  const Story story = Player(first, {}, 0.01).Play(10);
  EXPECT_EQ(story.text, "train..10 save@10 interrupted");
  Course second(config, story.saved);
  EXPECT_EQ(Player(second, {0.7, 0.6, 0.6}, 0.01).Play().text,
            "valid@10 save@10* train..20 valid@20 train..30 valid@30 save@30 restore@10 test@10 "
            "finished");
}

TEST(Course, EachLossHasItsMeanOverTheEpoch) {
  Course course(Config(), {});
  EXPECT_EQ(course.train(), LossMeans{});  // Nothing before the first step, and not zero.
  Player(course, {}, 0.01).Play();
  const LossMeans want = {{"click", 0.5}, {"rating", 2}};
  EXPECT_EQ(course.train(), want);
  EXPECT_EQ(course.state().history.back().train, want);
  EXPECT_EQ(course.state().history.back().learning_rate, 0.1);
  EXPECT_EQ(course.state().epoch_samples, 100u);
  EXPECT_EQ(course.state().samples, 300u);
}

TEST(Course, TheFirstStepsLossesArePutAsideAndSurviveAResumption) {
  Course course(Config(), {});
  EXPECT_FALSE(course.FirstLossOf("rating").has_value());
  ASSERT_TRUE(course.Next().has_value());
  course.OnTrained(4, Results(40, 1));
  ASSERT_TRUE(course.Next().has_value());
  Trained later = Results(10, 1);
  later.first_losses = {9, 9};
  course.OnTrained(5, later);
  EXPECT_EQ(course.FirstLossOf("rating"), 3);
  EXPECT_EQ(Course(Config(), course.state()).FirstLossOf("rating"), 3);
  EXPECT_FALSE(course.FirstLossOf("other").has_value());
}

TEST(Course, TheCurveBeginsWithTheFirstOrder) {
  Course course(Config(), {});
  ASSERT_TRUE(course.Next().has_value());
  course.OnTrained(4, Results(40, 2));
  ASSERT_EQ(course.state().curve.size(), 1u);
  const JobResult::CurvePoint& point = course.state().curve[0];
  EXPECT_EQ(point.step, 4u);
  EXPECT_EQ(point.seconds, 2);
  EXPECT_EQ(point.samples, 40u);
  EXPECT_EQ(point.learning_rate, 0.1);
  EXPECT_EQ(point.losses, (LossMeans{{"click", 0.5}, {"rating", 2}}));
}

}  // namespace
}  // namespace dt::scheduler
