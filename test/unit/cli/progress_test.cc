#include "cli/progress.h"

#include <gtest/gtest.h>

namespace dt::cli {
namespace {

scheduler::Progress Sample() {
  scheduler::Progress p;
  p.epoch = 2;
  p.epochs = 10;
  p.step_in_epoch = 30;
  p.steps_per_epoch = 40;
  p.samples_per_second = 12345.6;
  p.train = {{"click", 0.5}, {"rating", 1.25}};
  p.valid = {{.auc = 0.75, .loss = "click"}, {.logloss = 2, .loss = "rating"}};
  p.seconds_left = 83;
  return p;
}

TEST(ProgressLine, FitsAnyTerminalByLeavingOutTheLeastImportant) {
  const std::string all =
      "epoch 3/10  75.0%  12346 samples/s  loss click 0.50000, rating 1.25000  "
      "valid click AUC 0.75000, rating logloss 2.00000  left 1:23";
  EXPECT_EQ(ProgressLine(Sample(), all.size()), all);
  EXPECT_EQ(ProgressLine(Sample(), all.size() - 1),
            "epoch 3/10  75.0%  loss click 0.50000, rating 1.25000  "
            "valid click AUC 0.75000, rating logloss 2.00000  left 1:23");
  EXPECT_EQ(ProgressLine(Sample(), 79),
            "epoch 3/10  75.0%  loss click 0.50000, rating 1.25000  left 1:23");
  EXPECT_EQ(ProgressLine(Sample(), 60), "epoch 3/10  75.0%  loss click 0.50000, rating 1.25000");
  EXPECT_EQ(ProgressLine(Sample(), 40), "epoch 3/10  75.0%");
  for (size_t columns = 0; columns < 200; ++columns) {
    EXPECT_LE(ProgressLine(Sample(), columns).size(), columns);
  }
}

TEST(ProgressLine, ThereIsNoFigureBeforeTheFirst) {
  scheduler::Progress p;
  p.epochs = 10;
  p.steps_per_epoch = 40;
  EXPECT_EQ(ProgressLine(p, 80), "epoch 1/10   0.0%");
}

}  // namespace
}  // namespace dt::cli
