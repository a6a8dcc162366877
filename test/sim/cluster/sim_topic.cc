#include "test/sim/cluster/sim_topic.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"

namespace dt::sim {
namespace {

class Reader : public worker::MessageReader {
 public:
  Reader(const SimTopic& topic, std::function<Status()> interrupted, SimTopic::Wait wait)
      : topic_(topic), interrupted_(std::move(interrupted)), wait_(std::move(wait)) {}

  Result<uint32_t> Partitions() override { return topic_.options().partitions; }
  Result<worker::OffsetRange> Range(uint32_t partition) override {
    return worker::OffsetRange{0, topic_.EndOf(partition)};
  }
  Result<uint64_t> End(uint32_t partition, uint64_t) override { return topic_.EndOf(partition); }
  Status Read(uint32_t partition, worker::OffsetRange offsets, const Take& take) override {
    while (topic_.away() || topic_.EndOf(partition) < offsets.end) {
      DT_TRY_STATUS(interrupted_());
      DT_TRY_STATUS(wait_(topic_.world().Now() + milliseconds(50)));
    }
    for (uint64_t offset = offsets.first; offset < offsets.end; ++offset) {
      DT_TRY_STATUS(take({.offset = offset, .text = topic_.options().text(partition, offset)}));
    }
    return OkStatus();
  }

 private:
  const SimTopic& topic_;
  const std::function<Status()> interrupted_;
  const SimTopic::Wait wait_;
};

}  // namespace

SimTopic::SimTopic(const World& world, Options options)
    : world_(world), options_(std::move(options)), begun_(world.Now()), back_(world.Now()) {}

void SimTopic::StopBrokers(Duration duration) {
  const TimePoint until = world_.Now() + duration;
  begun_ += std::max(Duration::zero(), until - std::max(back_, world_.Now()));
  back_ = std::max(back_, until);
}

uint64_t SimTopic::EndOf(uint32_t partition) const {
  // While the brokers are away, `begun_` is as much too late as they are still to be away.
  const TimePoint now = std::max(back_, world_.Now());
  const double grown =
      SecondsBetween(begun_, now) / SecondsBetween(begun_, begun_ + options_.growing);
  const double share = std::min(1.0, grown * (1 + partition));
  return static_cast<uint64_t>(share * static_cast<double>(options_.messages));
}

std::unique_ptr<worker::MessageReader> SimTopic::Open(std::function<Status()> interrupted,
                                                      Wait wait) const {
  return std::make_unique<Reader>(*this, std::move(interrupted), std::move(wait));
}

}  // namespace dt::sim
