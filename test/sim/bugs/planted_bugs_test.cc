// Goal: the simulation can fail. Method: bugs planted around the real components, one at a time; in
// every story in which one strikes, something must be found to be wrong.
#include <deque>

#include "common/base/check.h"
#include "common/control/packet.h"
#include "server/chain/record_message.h"
#include "server/shard/shard_set.h"
#include "test/sim/bugs/bug.h"

namespace dt::sim {
namespace {

// Acknowledges one push that no server gets.
class LosesAPush : public Bug {
 public:
  using Bug::Bug;

 private:
  bool OnPush(const std::string& to, const std::string& from, PushRequest& push, Frames&) override {
    if (push.step != 3 || !IsCounted(push) || (struck() > 0 && push.request != lost_)) return true;
    if (struck() == 0) Strike();
    lost_ = push.request;
    AcknowledgeFor(to, from, push.request);
    return false;
  }
  uint64_t lost_ = 0;
};

// Updates the rows of one push at once, besides what the server does with it.
class AppliesAPushTwice : public Bug {
 public:
  using Bug::Bug;

 private:
  bool OnPush(const std::string& to, const std::string&, PushRequest& push, Frames&) override {
    if (push.step != 3 || struck() > 0 || push.groups.empty()) return true;
    Apply(*story().cluster().server(ServerAt(to)), push);
    return true;
  }
  void Apply(const SimServer& server, const PushRequest& push) {
    const KeyGroup& group = push.groups[0];
    for (server::ShardSet* const set : server.shard_sets()) {
      server::Shard* const shard = set->Find(group.shard);
      if (shard == nullptr) continue;
      server::EmbeddingTable& table = shard->table(group.table);
      const std::vector<float> ones(size_t{group.rows} * table.dim(), 1.0f);
      table.Push(push.keys.as<Key>().first(group.rows), ones, {.step = push.step});
      Strike();
    }
  }
};

// Gives a server, instead of a push of an asynchronous worker, one that the worker sent under the
// same number before the job was started again.
class MixesGenerations : public Bug {
 public:
  using Bug::Bug;

 private:
  using PushKey = std::tuple<std::string, ProcessId, Step, ShardId, uint32_t>;
  bool OnPush(const std::string& to, const std::string&, PushRequest& push,
              Frames& message) override {
    if (push.mode != PushMode::kGradients || push.pieces.empty()) return true;
    const PushKey key = {to, push.turn.worker, push.step, push.pieces[0].shard,
                         push.pieces[0].piece};
    const auto [at, is_new] = seen_.try_emplace(key, push);
    if (is_new || at->second.stamp.generation == push.stamp.generation) return true;
    PushRequest old = at->second;
    old.stamp = push.stamp;
    old.request = push.request;
    old.turn = push.turn;
    const bool same = old.keys.size() == push.keys.size() &&
                      std::ranges::equal(old.keys.bytes(), push.keys.bytes());
    // One push only, however often it comes: the old ones of two steps may be each other's new.
    if (same || struck_at_.value_or(key) != key) return true;
    struck_at_ = key;
    message = Encode(old);
    Strike();
    return true;
  }
  std::map<PushKey, PushRequest> seen_;
  std::optional<PushKey> struck_at_;
};

// A head acknowledges a push at once, and is killed before any other member has its records.
class AcknowledgesEarly : public Bug {
 public:
  using Bug::Bug;

 private:
  bool OnPush(const std::string& to, const std::string& from, PushRequest& push, Frames&) override {
    if (push.step != 3 || struck() > 0 || !IsCounted(push)) return true;
    Strike();
    AcknowledgeFor(to, from, push.request);
    KillServer(ServerAt(to));
    return false;
  }
};

// The scheduler names another head of one shard to one server and one worker than to the others.
class NamesTwoHeads : public Bug {
 public:
  using Bug::Bug;

 private:
  bool OnControl(const std::string& to, const std::string&, Frames& message) override {
    Cluster& cluster = story().cluster();
    const bool misled = IsAt(cluster.server(1), to) || IsAt(cluster.worker(1), to);
    Result<Packet> packet = DecodePacket(message);
    if (!misled || !packet.ok() || packet->payload.empty()) return true;
    Result<ControlMessage> control =
        DecodeControl(std::as_bytes(std::span<const char>(packet->payload)));
    if (!control.ok()) return true;
    ShardMap* map = nullptr;
    if (auto* start = std::get_if<StartMessage>(&*control)) map = &start->view.map;
    if (auto* changed = std::get_if<MapChangedMessage>(&*control)) map = &changed->map;
    if (map == nullptr) return true;
    std::vector<ProcessId>& members = map->chains[0].members;
    const auto second = std::ranges::find(members, ProcessId(2));
    if (second == members.end() || second == members.begin()) return true;
    std::swap(*second, members.front());
    packet->payload = EncodeControl(*control);
    message = EncodePacket(*packet);
    Strike();
    return true;
  }
  static bool IsAt(const Process* process, const std::string& address) {
    return process != nullptr && AddressOf(process->incarnation()) == address;
  }
};

// Takes a record that a head sent before it was killed, and that nobody got, for the one with this
// number of the head that followed.
class ForgetsTheVersion : public Bug {
 public:
  using Bug::Bug;

 private:
  bool OnRecords(const std::string&, const RecordsRequest& message, Frames& frames) override {
    Result<std::vector<server::LinkRecord>> records =
        server::RecordsIn(message, tables(), story().cluster().job().cluster.shards);
    if (!records.ok() || records->empty()) return true;
    const server::Record& first = records->front().record.record;
    if (held_.empty() && first.kind == server::RecordKind::kContribution &&
        first.contribution.step >= 3) {
      held_ = *std::move(records);
      KillServer(message.from.value() - 1);
      return false;
    }
    if (Replace(*records)) Send(message, *records, frames);
    return true;
  }
  // One record only, however often it is sent.
  bool Replace(std::vector<server::LinkRecord>& records) {
    for (server::LinkRecord& record : records) {
      for (const server::LinkRecord& old : held_) {
        if (!IsOfAnotherHead(old, record)) continue;
        if (struck() == 0) struck_at_ = KeyOf(record), Strike();
        if (KeyOf(record) != struck_at_) continue;
        record.record = old.record;
        return true;
      }
    }
    return false;
  }
  static bool IsOfAnotherHead(const server::LinkRecord& old, const server::LinkRecord& record) {
    const server::Record &a = old.record.record, &b = record.record.record;
    return KeyOf(old) == KeyOf(record) && old.since < record.since &&
           server::Encode(old.record.shard, a).head != server::Encode(record.record.shard, b).head;
  }
  using RecordKey = std::pair<ShardId, server::Position>;
  static RecordKey KeyOf(const server::LinkRecord& record) {
    return {record.record.shard, record.record.record.position};
  }
  static void Send(const RecordsRequest& message, const std::vector<server::LinkRecord>& records,
                   Frames& frames) {
    std::deque<server::RecordBytes> bytes;
    server::RecordMessageWriter writer;
    for (const server::LinkRecord& record : records) {
      writer.Add(record.since,
                 bytes.emplace_back(server::Encode(record.record.shard, record.record.record)));
    }
    RecordsRequest changed = writer.Take(FramePool::Private());
    changed.stamp = message.stamp;
    changed.from = message.from;
    frames = Encode(changed);
  }
  std::vector<server::LinkRecord> held_;
  RecordKey struck_at_{};
};

TEST(PlantedBugs, ALostPushIsCaught) { ExpectCaught<LosesAPush>(Mode::kSynchronous, {}); }
TEST(PlantedBugs, ALostPushOfAnAsynchronousWorkerIsCaught) {
  ExpectCaught<LosesAPush>(Mode::kBounded, {});
}
TEST(PlantedBugs, APushAppliedTwiceIsCaught) {
  ExpectCaught<AppliesAPushTwice>(Mode::kSynchronous, {});
}
TEST(PlantedBugs, MessagesOfAnOldGenerationAreCaught) {
  ExpectCaught<MixesGenerations>(Mode::kUnbounded,
                                 {.network = {.late = 0.01, .delay_max = milliseconds(20)},
                                  .lasting = seconds(12),
                                  .kill = 0.1});
}

TEST(PlantedBugs, AnEarlyAcknowledgementIsCaught) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    ExpectCaught<AcknowledgesEarly>(mode, {});
  }
}
TEST(PlantedBugs, TwoOwnersAreCaught) { ExpectCaught<NamesTwoHeads>(Mode::kChains, {}); }
TEST(PlantedBugs, AForgottenVersionOfTheMapIsCaught) {
  for (const Mode mode : {Mode::kChains, Mode::kBoundedChains}) {
    ExpectCaught<ForgetsTheVersion>(mode, {.network = {.delay_max = milliseconds(20)}});
  }
}

}  // namespace
}  // namespace dt::sim
