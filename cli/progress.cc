#include "cli/progress.h"

#include <cmath>
#include <cstdio>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/text.h"

namespace dt::cli {
namespace {

constexpr Duration kLogInterval = seconds(10);

std::string TimeText(double seconds_left) {
  if (!std::isfinite(seconds_left) || seconds_left < 0) return "-";
  const auto s = std::lround(seconds_left);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

ProgressPrinter::ProgressPrinter(const CommandLine& line)
    : terminal_(!line.no_progress && isatty(STDOUT_FILENO) == 1) {}

void ProgressPrinter::operator()(const scheduler::Progress& p) {
  const double percent = p.steps_per_epoch == 0 ? 0.0
                                                : 100.0 * static_cast<double>(p.step_in_epoch) /
                                                      static_cast<double>(p.steps_per_epoch);
  if (terminal_) {
    // Nothing is known before the first report of the workers.
    const bool known = p.samples_per_second > 0;
    const std::string rate = known ? fmt::format("{:.0f}", p.samples_per_second) : "-";
    const std::string loss = known ? fmt::format("{:.4f}", p.loss) : "-";
    const std::string text =
        fmt::format("epoch {}/{} {:5.1f}%  {} samples/s  loss {}  valid {}  left {}", p.epoch + 1,
                    p.epochs, percent, rate, loss, p.valid, TimeText(p.seconds_left));
    std::printf("\r%s\033[K", Printable(text).c_str());
    std::fflush(stdout);
    open_ = true;
    return;
  }
  const TimePoint now = SystemClock().Now();
  if (now - last_log_ < kLogInterval) return;
  last_log_ = now;
  LogInfo("progress", {{"epoch", p.epoch + 1},
                       {"step", p.step},
                       {"percent", Rounded(percent, 1)},
                       {"samples_per_second", Rounded(p.samples_per_second, 0)},
                       {"loss", Rounded(p.loss, 5)},
                       {"valid", p.valid}});
}

void ProgressPrinter::Finish() {
  if (open_) std::printf("\n");
  open_ = false;
}

}  // namespace dt::cli
