#include "scheduler/schedule/stream.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::scheduler {

Result<StreamRecord> Stream::Begin(const std::vector<PartitionRange>& partitions,
                                   const std::vector<uint64_t>& offsets,
                                   const StreamConfig& config) {
  if (partitions.size() < offsets.size()) {
    return WithHint(
        Invalid("the topic has {} partitions, and the job has trained on {}", partitions.size(),
                offsets.size()),
        "name the topic that the job was trained on, or begin anew with --resume never");
  }
  StreamRecord record;
  for (size_t p = 0; p < partitions.size(); ++p) {
    const PartitionRange& range = partitions[p];
    const bool goes_on = p < offsets.size();
    const uint64_t next = goes_on                              ? offsets[p]
                          : config.from_end && offsets.empty() ? range.end
                                                               : range.first;
    if (next < range.first) {
      return WithHint(
          Malformed("partition {}: the job goes on with message {}, and the oldest that "
                    "is there is {}: messages were deleted",
                    p, next, range.first),
          "keep messages for longer in the topic, or begin anew with --resume never");
    }
    if (next > range.end && config.command.empty()) {
      return WithHint(Malformed("partition {}: the job goes on with message {}, and the topic ends "
                                "before message {}: it is another topic, or was made again",
                                p, next, range.end),
                      "begin anew with --resume never");
    }
    record.next.push_back(next);
    record.ends.push_back(std::max(next, range.end));
  }
  return record;
}

void Stream::OnReport(const StreamReportMessage& report) {
  for (size_t i = 0; i < report.numbers.size(); ++i) {
    const uint32_t partition = report.numbers[i];
    if (partition >= record_.ends.size()) continue;
    record_.ends[partition] = std::max(record_.ends[partition], report.ranges[i].end);
  }
}

uint64_t Stream::Left() const {
  uint64_t left = 0;
  for (size_t p = 0; p < Ends().size(); ++p) left += Ends()[p] - record_.next[p];
  return left;
}

uint64_t Stream::StepsOf(const StreamCut& cut) const {
  return (cut.messages() + limits_.batch_size - 1) / limits_.batch_size;
}

std::optional<StreamCut> Stream::Next(uint64_t steps_max, TimePoint now) {
  const uint64_t left = Left();
  if (left == 0) {
    waits_since_.reset();
    return std::nullopt;
  }
  const bool few = left < limits_.batch_size;
  if (few && !holds()) {
    if (!waits_since_.has_value()) waits_since_ = now;
    if (now - *waits_since_ < limits_.wait) return std::nullopt;
  }
  waits_since_.reset();
  const std::vector<uint64_t> each = ShareOf(left);
  // Each step has as many messages of a partition as the others.
  const std::vector<uint64_t>& ends = Ends();
  uint64_t steps = steps_max;
  for (size_t p = 0; p < ends.size(); ++p) {
    if (each[p] > 0) steps = std::min(steps, (ends[p] - record_.next[p]) / each[p]);
  }
  StreamCut cut{.first = record_.next, .count = each};
  for (uint64_t& count : cut.count) count *= steps;
  return cut;
}

// How many messages of each partition a step has: a batch, or all that are left, in proportion to
// what the partitions have.
std::vector<uint64_t> Stream::ShareOf(uint64_t left) const {
  const uint64_t wanted = std::min<uint64_t>(left, limits_.batch_size);
  std::vector<uint64_t> share;
  uint64_t before = 0, taken = 0;  // Messages of the partitions so far, and those shared out.
  for (size_t p = 0; p < Ends().size(); ++p) {
    __extension__ using Wide = unsigned __int128;
    before += Ends()[p] - record_.next[p];
    const auto until = static_cast<uint64_t>(Wide{before} * wanted / left);
    share.push_back(until - taken);
    taken = until;
  }
  return share;
}

std::optional<StreamCut> Stream::Take(uint64_t steps_max, TimePoint now) {
  std::optional<StreamCut> cut = Next(steps_max, now);
  if (!cut.has_value()) return cut;
  record_.next = cut->End();
  if (holds() && Left() == 0) record_.limit.clear();
  return cut;
}

std::optional<StreamCut> Stream::Hold(uint64_t steps_max, TimePoint now) {
  DT_CHECK(!holds());
  std::optional<StreamCut> cut = Next(steps_max, now);
  if (cut.has_value()) record_.limit = cut->End();
  return cut;
}

}  // namespace dt::scheduler
