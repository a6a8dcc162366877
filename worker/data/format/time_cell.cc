#include "worker/data/format/time_cell.h"

#include <chrono>

#include "worker/data/format/number.h"

namespace dt::worker {
namespace {

using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr int64_t kDaySeconds = 86400;

constexpr int64_t StartOf(year_month_day date) {
  return int64_t{sys_days(date).time_since_epoch().count()} * kDaySeconds;
}
constexpr int64_t kFirst = StartOf(year_month_day(std::chrono::year(0) / 1 / 1));
constexpr int64_t kEnd = StartOf(year_month_day(std::chrono::year(10000) / 1 / 1));

// Walks the characters of a time.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : left_(text) {}

  bool done() const { return left_.empty(); }
  // Takes one of these characters if it comes next.
  bool Take(std::string_view any) {
    if (done() || any.find(left_.front()) == any.npos) return false;
    left_.remove_prefix(1);
    return true;
  }
  // Takes `digits` digits that are at most `most`; any other text makes the time wrong.
  int64_t Number(size_t digits, uint64_t most) {
    uint64_t value = 0;
    ok_ =
        ok_ && left_.size() >= digits && ParseU64(left_.substr(0, digits), value) && value <= most;
    left_.remove_prefix(ok_ ? digits : 0);
    return static_cast<int64_t>(value);
  }
  void Expect(std::string_view any) { ok_ = Take(any) && ok_; }
  bool ok() const { return ok_; }

 private:
  std::string_view left_;
  bool ok_ = true;
};

// Of a distance from UTC, behind its sign.
int64_t TakeDistance(TimeText& text) {
  const int64_t hours = text.Number(2, 23);
  const bool has_minutes = text.Take(":") || !text.done();
  return hours * 3600 + (has_minutes ? text.Number(2, 59) * 60 : 0);
}

int64_t TakeTimeOfDay(TimeText& text) {
  int64_t seconds = text.Number(2, 23) * 3600;
  text.Expect(":");
  seconds += text.Number(2, 59) * 60;
  if (text.Take(":")) {
    seconds += text.Number(2, 60);
    if (text.Take(".,")) {
      text.Number(1, 9);
      while (text.Take("0123456789")) {
      }
    }
  }
  if (text.Take("Z")) return seconds;
  if (text.Take("+")) return seconds - TakeDistance(text);
  return text.Take("-") ? seconds + TakeDistance(text) : seconds;
}

bool ParseIso(std::string_view cell, int64_t& seconds) {
  TimeText text(cell);
  const auto year = static_cast<int>(text.Number(4, 9999));
  text.Expect("-");
  const auto month = static_cast<unsigned>(text.Number(2, 12));
  text.Expect("-");
  const auto day = static_cast<unsigned>(text.Number(2, 31));
  const year_month_day date{std::chrono::year(year), std::chrono::month(month),
                            std::chrono::day(day)};
  if (!text.ok() || !date.ok()) return false;
  seconds = StartOf(date);
  if (text.Take("T ")) seconds += TakeTimeOfDay(text);
  return text.ok() && text.done();
}

int64_t FloorDivided(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

bool IsTime(int64_t seconds) { return seconds >= kFirst && seconds < kEnd; }

bool ParseTime(std::string_view text, int64_t& seconds) {
  return (ParseI64(text, seconds) || ParseIso(text, seconds)) && IsTime(seconds);
}

Key PartOf(TimePart part, int64_t seconds) {
  const int64_t day = FloorDivided(seconds, kDaySeconds);
  const sys_days date{std::chrono::days(day)};
  switch (part) {
    case TimePart::kHour:
      return static_cast<Key>((seconds - day * kDaySeconds) / 3600);
    case TimePart::kWeekday:
      return std::chrono::weekday(date).iso_encoding() - 1;
    case TimePart::kDay:
      return static_cast<unsigned>(year_month_day(date).day());
    case TimePart::kMonth:
      break;
  }
  return static_cast<unsigned>(year_month_day(date).month());
}

}  // namespace dt::worker
