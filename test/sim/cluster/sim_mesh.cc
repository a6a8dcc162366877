#include "test/sim/cluster/sim_mesh.h"

namespace dt::sim {
namespace {

constexpr Duration kPoll = milliseconds(50);
constexpr Duration kConnectPoll = milliseconds(10);

}  // namespace

class SimMesh : public worker::Mesh {
 public:
  SimMesh(MeshHub& hub, std::shared_ptr<MeshHub::Group> group, uint32_t rank,
          worker::MeshLimits limits)
      : hub_(hub), group_(std::move(group)), rank_(rank), limits_(std::move(limits)) {}

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return static_cast<uint32_t>(group_->ranks.size()); }

  Status Begin(const worker::MessageTag& tag, std::string_view operation) override {
    operation_ = operation;
    deadline_ = hub_.world_.Now() + limits_.timeout;
    sent_.Begin(tag, size());
    received_.Begin(tag, size());
    awaited_.clear();
    return OkStatus();
  }

  Status Post(std::span<const worker::Outgoing> send,
              std::span<const worker::Incoming> receive) override {
    for (const worker::Outgoing& out : send) {
      if (!out.bytes.empty()) DT_TRY_STATUS(Send(out));
    }
    for (const worker::Incoming& in : receive) {
      const uint64_t slot = in.bytes.empty() ? 0 : received_.NextSlot(in.rank, in.channel);
      awaited_.push_back({in, slot});
    }
    return OkStatus();
  }

  Status WaitFor(size_t received) override {
    auto& [in, slot] = awaited_[received];
    if (in.bytes.empty()) return OkStatus();
    DT_TRY_STATUS(Receive(in, slot));
    in.bytes = {};
    return OkStatus();
  }

  Status End() override {
    for (size_t i = 0; i < awaited_.size(); ++i) DT_TRY_STATUS(WaitFor(i));
    return OkStatus();
  }

  // The process has one thread, which does not wait while it calls this.
  void Cancel() override {}

 private:
  MeshHub::Rank& Own() { return group_->ranks[rank_]; }

  Status Send(const worker::Outgoing& out) {
    since_ = hub_.world_.Now();
    while (!group_->ranks[out.rank].host.has_value()) {
      DT_TRY_STATUS(Pause(out.rank, kConnectPoll));
    }
    std::vector<std::byte> bytes(out.bytes.begin(), out.bytes.end());
    const uint64_t slot = sent_.NextSlot(out.rank, out.channel);
    const Node to = group_->ranks[out.rank].host->node;
    hub_.wires_.SendInOrder(
        Own().host->node, to,
        [group = group_, from = rank_, to = out.rank, slot, bytes = std::move(bytes)] {
          MeshHub::Rank& there = group->ranks[to];
          if (!there.host.has_value()) return;
          there.arrived[{from, slot}].push_back(bytes);
          there.host->wake();
        });
    return OkStatus();
  }

  Status Receive(const worker::Incoming& in, uint64_t slot) {
    since_ = hub_.world_.Now();
    std::deque<std::vector<std::byte>>& arrived = Own().arrived[{in.rank, slot}];
    while (arrived.empty()) DT_TRY_STATUS(Pause(in.rank, kPoll));
    if (arrived.front().size() != in.bytes.size()) {
      return Internal("{}: {} bytes from rank {}, not {}", operation_, arrived.front().size(),
                      in.rank, in.bytes.size());
    }
    std::ranges::copy(arrived.front(), in.bytes.begin());
    arrived.pop_front();
    return OkStatus();
  }

  Status Pause(uint32_t peer, Duration poll) {
    if (Own().broken && limits_.awaits) limits_.awaits(peer, since_);
    if (Own().broken) return Unavailable("{}: rank {} has closed its connection", operation_, peer);
    if (hub_.world_.Now() >= deadline_) {
      return Timeout("{}: rank {} heard nothing from rank {}", operation_, rank_, peer);
    }
    if (limits_.awaits) limits_.awaits(peer, since_);
    DT_TRY_STATUS(Own().host->wait(std::min(deadline_, hub_.world_.Now() + poll)));
    return limits_.interrupted ? limits_.interrupted() : OkStatus();
  }

  MeshHub& hub_;
  const std::shared_ptr<MeshHub::Group> group_;
  const uint32_t rank_;
  const worker::MeshLimits limits_;
  // The call under way.
  std::string operation_;
  TimePoint deadline_, since_;
  worker::MessageCounts sent_, received_;
  std::vector<std::pair<worker::Incoming, uint64_t>> awaited_;  // With their slots.
};

std::unique_ptr<worker::Mesh> MeshHub::Connect(const std::string& name, uint32_t rank,
                                               uint32_t size, const worker::MeshLimits& limits,
                                               MeshHost host) {
  std::shared_ptr<Group>& group = groups_[name];
  if (group == nullptr) {
    group = std::make_shared<Group>();
    group->ranks.resize(size);
  }
  group->ranks[rank].host = std::move(host);
  return std::make_unique<SimMesh>(*this, group, rank, limits);
}

void MeshHub::Break(Node node) {
  for (const auto& [name, group] : groups_) {
    const auto ended = std::ranges::find_if(group->ranks, [&](const Rank& rank) {
      return rank.host.has_value() && rank.host->node == node;
    });
    if (ended == group->ranks.end()) continue;
    ended->host.reset();
    for (Rank& rank : group->ranks) rank.broken = true;
    // Not at once: the one that has ended may be in the midst of something.
    world_.After(milliseconds(1), [group = group] {
      for (Rank& rank : group->ranks) {
        if (rank.host.has_value()) rank.host->wake();
      }
    });
  }
}

}  // namespace dt::sim
