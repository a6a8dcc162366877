// Goal: the simulation can fail. Method: bugs planted around the real components, one at a time; in
// every story in which one strikes, something must be found to be wrong.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "common/wire/data.h"
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
  explicit Bug(Story& story) : story_(story), tables_(WireTablesOf(story.cluster().job())) {
    story.cluster().wires().SetTap(
        [this](const std::string& to, const std::string& from, Frames& message) {
          if (!to.starts_with("sim://")) return true;
          Result<DataRequest> request = DecodeDataRequest(message, tables_);
          return !request.ok() || request->kind != DataRequest::Kind::kPush ||
                 OnPush(to, from, request->push, message);
        });
  }
  virtual ~Bug() { story_.cluster().wires().SetTap({}); }
  int struck() const { return struck_; }

 protected:
  // False: the server does not get it.
  virtual bool OnPush(const std::string& to, const std::string& from, PushRequest& push,
                      Frames& message) = 0;
  void Strike() { ++struck_; }
  Story& story() { return story_; }

 private:
  Story& story_;
  const std::vector<WireTable> tables_;
  int struck_ = 0;
};

// Acknowledges one push that no server gets.
class LosesAPush : public Bug {
 public:
  using Bug::Bug;

 private:
  bool OnPush(const std::string& to, const std::string& from, PushRequest& push, Frames&) override {
    if (push.step != 3 || (struck() > 0 && push.request != lost_)) return true;
    if (struck() == 0) Strike();
    lost_ = push.request;
    story().cluster().wires().Deliver(from, to,
                                      Encode(DataReply{.request = push.request, .status = {}}));
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
    for (uint32_t s = 0; s < story().cluster().job().cluster.servers; ++s) {
      for (uint32_t e = 0; e < story().cluster().job().cluster.server.executors; ++e) {
        if (SimServer::EndpointOf(s + 1, e) == to) Apply(*story().cluster().server(s), push);
      }
    }
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
