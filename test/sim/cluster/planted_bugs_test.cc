// Goal: the simulation can fail. Method: bugs planted around the real components, one at a time; in
// every story in which one strikes, something must be found to be wrong.
#include <deque>
#include <filesystem>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "common/base/check.h"
#include "common/control/packet.h"
#include "common/storage/files.h"
#include "common/wire/data.h"
#include "scheduler/checkpoint/checkpoint_store.h"
#include "server/chain/record_message.h"
#include "server/shard/shard_set.h"
#include "server/table/table_specs.h"
#include "test/sim/cluster/story.h"

namespace dt::sim {
namespace {

constexpr int kStoriesMax = 40, kStruckEnough = 4;

std::vector<WireTable> WireTablesOf(const JobConfig& job) {
  std::vector<WireTable> tables;
  for (const server::TableSpec& table : server::TableSpecsOf(job)) {
    tables.push_back({table.dim, table.wire});
  }
  return tables;
}

// Where a bug is: it sees every message before the process that it is for.
class Bug {
 public:
  explicit Bug(Story& story)
      : story_(story),
        tables_(server::TableSpecsOf(story.cluster().job())),
        wire_tables_(WireTablesOf(story.cluster().job())) {
    story.cluster().wires().SetTap(
        [this](const std::string& to, const std::string& from, Frames& message) {
          if (!to.starts_with("sim://")) return OnControl(to, message);
          Result<DataRequest> request = DecodeDataRequest(message, wire_tables_);
          if (!request.ok()) return true;
          if (request->kind == DataRequest::Kind::kPush) {
            return OnPush(to, from, request->push, message);
          }
          return request->kind != DataRequest::Kind::kRecords ||
                 OnRecords(to, request->records, message);
        });
  }
  virtual ~Bug() { story_.cluster().wires().SetTap({}); }
  int struck() const { return struck_; }

 protected:
  // A message to a server, from a worker or from another server. False: it does not get it.
  virtual bool OnPush(const std::string&, const std::string&, PushRequest&, Frames&) {
    return true;
  }
  virtual bool OnRecords(const std::string&, const RecordsRequest&, Frames&) { return true; }
  // A message of the scheduler, or to it.
  virtual bool OnControl(const std::string&, Frames&) { return true; }

  void Strike() { ++struck_; }
  Story& story() { return story_; }
  std::span<const server::TableSpec> tables() const { return tables_; }

  // Whether its loss changes the number of updates of some row.
  bool IsCounted(const PushRequest& push) const {
    return std::ranges::any_of(push.groups, [this](const KeyGroup& group) {
      return tables_[group.table].id == TableIdOf("counts");
    });
  }
  void AcknowledgeFor(const std::string& server, const std::string& worker, uint64_t request) {
    story_.cluster().wires().Deliver(worker, server,
                                     Encode(DataReply{.request = request, .status = {}}));
  }
  // The index of the server that listens at this address, among those that the job begins with.
  uint32_t ServerAt(const std::string& endpoint) const {
    const JobConfig& job = story_.cluster().job();
    for (uint32_t s = 0; s < job.cluster.servers; ++s) {
      for (uint32_t e = 0; e < job.cluster.server.executors; ++e) {
        if (SimServer::EndpointOf(s + 1, e) == endpoint) return s;
      }
    }
    DT_UNREACHABLE();
  }
  // At once after the present message; another one is started later.
  void KillServer(uint32_t index) {
    Cluster& cluster = story_.cluster();
    cluster.world().After(Duration::zero(), [&cluster, index] { cluster.server(index)->Kill(); });
    cluster.world().After(seconds(1), [&cluster, index] { cluster.StartServer(index); });
  }

 private:
  Story& story_;
  const std::vector<server::TableSpec> tables_;
  const std::vector<WireTable> wire_tables_;
  int struck_ = 0;
};

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
    const PushKey key = {to, push.worker, push.step, push.pieces[0].shard, push.pieces[0].piece};
    const auto [at, is_new] = seen_.try_emplace(key, push);
    if (is_new || at->second.stamp.generation == push.stamp.generation) return true;
    PushRequest old = at->second;
    old.stamp = push.stamp;
    old.request = push.request;
    old.first_step = push.first_step;
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
  bool OnControl(const std::string& to, Frames& message) override {
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

// Whether all is as promised.
bool IsAsPromised(Mode mode, const Misfortunes& misfortunes, Story& story) {
  testing::TestPartResultArray failures;
  testing::ScopedFakeTestPartResultReporter report(
      testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
  ExpectAsPromised(mode, misfortunes, story);
  return failures.size() == 0;
}

template <class PlantedBug>
void ExpectCaught(Mode mode, const Misfortunes& misfortunes) {
  int struck = 0;
  for (int seed = 1; seed <= kStoriesMax && struck < kStruckEnough; ++seed) {
    Story story(static_cast<uint64_t>(seed), JobOf(mode));
    const PlantedBug bug(story);
    const bool as_promised = IsAsPromised(mode, misfortunes, story);
    if (bug.struck() == 0) continue;
    ++struck;
    EXPECT_FALSE(as_promised) << "seed " << seed << ": nobody has noticed\n" << story.text();
  }
  EXPECT_EQ(struck, kStruckEnough);
}

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

// Gives the newest checkpoint what the first server wrote for the one before. False: there is none.
bool TearNewestCheckpoint(const std::string& dir) {
  namespace fs = std::filesystem;
  const std::vector<scheduler::CheckpointInfo> all = scheduler::ListCheckpoints(dir);
  if (all.size() < 2) return false;
  const std::string &from = all[all.size() - 2].folder, &to = all.back().folder;
  const Result<scheduler::Manifest> old = scheduler::ReadManifest(from);
  Result<scheduler::Manifest> torn = scheduler::ReadManifest(to);
  DT_CHECK(old.ok() && torn.ok());
  const auto of_first = [](const CheckpointFile& file) {
    return file.name.starts_with("server-1/");
  };
  DT_CHECK(std::erase_if(torn->files, of_first) > 0);
  for (const CheckpointFile& file : old->files) {
    if (!of_first(file)) continue;
    fs::remove(fs::path(to) / file.name);
    fs::copy_file(fs::path(from) / file.name, fs::path(to) / file.name);
    torn->files.push_back(file);
  }
  const Status written = WriteWholeFile(to + "/manifest.json", scheduler::ManifestToJson(*torn));
  DT_CHECK_MSG(written.ok(), "{}", ToText(written));
  return true;
}

// A checkpoint of which one server's part was cut earlier than the others.
TEST(PlantedBugs, ATornCutIsCaught) {
  int struck = 0;
  for (uint64_t seed = 1; seed <= kStoriesMax && struck < kStruckEnough; ++seed) {
    Story story(seed, JobOf(Mode::kBounded));
    Cluster& cluster = story.cluster();
    const int before = struck;
    const std::function<void()> look = [&] {
      if (!TearNewestCheckpoint(cluster.job().checkpoint.dir)) {
        return cluster.world().After(milliseconds(5), look);
      }
      ++struck;
      cluster.worker(0)->Kill();
    };
    look();
    const bool as_promised = IsAsPromised(Mode::kBounded, {}, story);
    EXPECT_FALSE(as_promised && struck > before) << "seed " << seed << ": nobody has noticed";
  }
  EXPECT_EQ(struck, kStruckEnough);
}

// The end of a log that was acknowledged and is not there.
TEST(PlantedBugs, ALogThatLostItsEndIsCaught) {
  int struck = 0;
  for (uint64_t seed = 1; seed <= kStoriesMax && struck < kStruckEnough; ++seed) {
    Story story(seed, JobOf(Mode::kLog));
    World& world = story.cluster().world();
    world.After(milliseconds(600 + 25 * static_cast<int>(seed)), [&] {
      SimServer* const server = story.cluster().server(0);
      if (server == nullptr || !server->alive()) return;
      server->KillInNextWrite(2000);
      world.After(seconds(1), [&, server] {
        if (server->alive() || story.cluster().server(0) != server) return;
        story.cluster().StartServer(0);
        ++struck;
      });
    });
    const int before = struck;
    const bool as_promised = IsAsPromised(Mode::kLog, {}, story);
    EXPECT_FALSE(as_promised && struck > before) << "seed " << seed << ": nobody has noticed";
  }
  EXPECT_EQ(struck, kStruckEnough);
}

}  // namespace
}  // namespace dt::sim
