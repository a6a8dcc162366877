#include "worker/data/stream/command_reader.h"

#include <algorithm>
#include <cstring>
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace dt::worker {
namespace {

constexpr int kPollMs = 200;  // Between two looks at `interrupted`.
constexpr size_t kReadBytes = 65536;
constexpr size_t kLineBytesMax = size_t{16} << 20;
constexpr int kReadsAtOnce = 256;  // For one look at the end.

}  // namespace

CommandReader::CommandReader(const StreamConfig& config, std::function<Status()> interrupted)
    : command_(config.command),
      interrupted_(std::move(interrupted)),
      partitions_(config.partitions) {}

Status CommandReader::Start(uint32_t number, uint64_t offset) {
  Partition& partition = partitions_[number];
  partition = {.command = nullptr, .next = offset, .bytes = 0, .ahead = ""};
  DT_TRY(partition.command,
         Command::Start(fmt::format("export DOVETAIL_PARTITION={} DOVETAIL_OFFSET={}\n{}", number,
                                    offset, command_)));
  return OkStatus();
}

// Adds what the command prints within the time to `ahead`; returns whether it has printed anything.
Result<bool> CommandReader::Fill(uint32_t number, int timeout_ms) {
  Partition& partition = partitions_[number];
  pollfd ready{.fd = partition.command->output(), .events = POLLIN, .revents = 0};
  const int events = poll(&ready, 1, timeout_ms);
  if (events == 0 || (events < 0 && errno == EINTR)) return false;
  const size_t before = partition.ahead.size();
  partition.ahead.resize(before + kReadBytes);
  const ssize_t got = read(ready.fd, partition.ahead.data() + before, kReadBytes);
  partition.ahead.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0 && errno == EINTR) return false;
  if (got < 0) {
    return Unavailable("reading from the command `{}` failed: {}", command_, std::strerror(errno));
  }
  partition.bytes += static_cast<size_t>(got);
  if (got > 0) return true;
  DT_TRY_STATUS(partition.command->Reap(partition.bytes));
  return WithHint(
      Invalid("the command `{}` of partition {} has ended, before message {}", command_, number,
              partition.next),
      "with train.until: forever it must wait for more; without it, it is read to its end");
}

Result<uint64_t> CommandReader::End(uint32_t number, uint64_t known) {
  Partition& partition = partitions_[number];
  if (partition.command == nullptr) DT_TRY_STATUS(Start(number, known));
  for (int reads = 0; reads < kReadsAtOnce; ++reads) {
    DT_TRY(const bool more, Fill(number, 0));
    if (!more) break;
    partition.next += static_cast<uint64_t>(std::ranges::count(partition.ahead, '\n'));
    partition.ahead.clear();
  }
  return partition.next;
}

Status CommandReader::Read(uint32_t number, OffsetRange offsets, const Take& take) {
  Partition& partition = partitions_[number];
  if (offsets.size() == 0) return OkStatus();
  if (partition.command == nullptr || partition.next != offsets.first) {
    DT_TRY_STATUS(Start(number, offsets.first));
  }
  const Status read = ReadFrom(number, offsets.end, take);
  if (!read.ok()) partition.command = nullptr;
  return read;
}

Status CommandReader::ReadFrom(uint32_t number, uint64_t end, const Take& take) {
  Partition& partition = partitions_[number];
  size_t begin = 0;
  while (partition.next < end) {
    const size_t newline = partition.ahead.find('\n', begin);
    if (newline != std::string::npos) {
      DT_TRY_STATUS(
          take({.offset = partition.next, .text = partition.ahead.substr(begin, newline - begin)}));
      ++partition.next;
      begin = newline + 1;
      continue;
    }
    partition.ahead.erase(0, std::exchange(begin, 0));
    if (partition.ahead.size() > kLineBytesMax) {
      return Malformed("the command of partition {}: message {} has more than {} MiB", number,
                       partition.next, kLineBytesMax >> 20);
    }
    DT_TRY_STATUS(interrupted_());
    DT_TRY_STATUS(Fill(number, kPollMs).status());
  }
  partition.ahead.erase(0, begin);
  return OkStatus();
}

}  // namespace dt::worker
