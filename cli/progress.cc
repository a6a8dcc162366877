#include "cli/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

#include "common/base/log.h"
#include "common/base/text.h"

namespace dt::cli {
namespace {

constexpr Duration kLogInterval = seconds(10);

std::string TimeText(double seconds_left) {
  const auto s = std::lround(seconds_left);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

double PercentOf(const scheduler::Progress& p) {
  if (p.steps_per_epoch == 0) return 0;
  return 100.0 * static_cast<double>(p.step_in_epoch) / static_cast<double>(p.steps_per_epoch);
}

// The current width of the terminal, which may change while a job runs.
size_t Columns() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace

std::string ProgressLine(const scheduler::Progress& p, size_t columns) {
  struct Part {
    std::string text;
    int importance = 0;  // The least important part is dropped first.
  };
  std::vector<Part> parts = {
      {fmt::format("epoch {}/{} {:5.1f}%", p.epoch + 1, p.epochs, PercentOf(p)), 5}};
  if (p.samples_per_second)
    parts.push_back({fmt::format("{:.0f} samples/s", *p.samples_per_second), 1});
  if (!p.train.empty()) parts.push_back({"loss " + SummaryOf(p.train), 4});
  if (!p.valid.empty()) parts.push_back({"valid " + SummaryOf(p.valid), 2});
  if (p.seconds_left) parts.push_back({"left " + TimeText(*p.seconds_left), 3});
  for (;;) {
    std::string line;
    for (const Part& part : parts) line += (line.empty() ? "" : "  ") + Printable(part.text);
    if (line.size() <= columns || parts.size() == 1) return line.substr(0, columns);
    parts.erase(std::ranges::min_element(parts, {}, &Part::importance));
  }
}

ProgressPrinter::ProgressPrinter(const CommandLine& line)
    : terminal_(!line.no_progress && isatty(STDOUT_FILENO) == 1) {}

void ProgressPrinter::operator()(const scheduler::Progress& p) {
  if (terminal_) {
    // Leaves the last column free, because a terminal may wrap after it.
    std::printf("\r%s\033[K", ProgressLine(p, Columns() - 1).c_str());
    std::fflush(stdout);
    open_ = true;
    return;
  }
  const TimePoint now = SystemClock().Now();
  if (now - last_log_ < kLogInterval) return;
  if (p.train.empty() || !p.samples_per_second) return;  // Nothing is known yet.
  last_log_ = now;
  const LogField loss = p.train.size() == 1 ? LogField("loss", Rounded(p.train.front().mean, 5))
                                            : LogField("losses", SummaryOf(p.train));
  LogInfo("progress", {{"epoch", p.epoch + 1},
                       {"step", p.step},
                       {"percent", Rounded(PercentOf(p), 1)},
                       {"samples_per_second", Rounded(*p.samples_per_second, 0)},
                       loss,
                       {"valid", SummaryOf(p.valid)}});
}

void ProgressPrinter::Finish() {
  if (open_) std::printf("\n");
  open_ = false;
}

}  // namespace dt::cli
