// Goal: when a shard moves to another server while steps are under way, nothing is lost and nothing
// counts twice, rows have the bits of a run without moves, and requests for other shards are not
// disturbed. Method: the real request books, frontends, shards and clocks on a network that drops,
// repeats and delays messages; between two messages the test itself hands over the shard and
// changes the map.
#include <optional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "server/service/data_frontend.h"
#include "server/shard/checksum.h"
#include "test/support/push_maker.h"
#include "test/support/sim_network.h"
#include "test/support/sim_seeds.h"
#include "worker/client/request_book.h"

namespace dt {
namespace {

constexpr uint32_t kShards = 8, kServers = 3, kWorkers = 2, kSlices = 3, kKeys = 60;
constexpr Step kSteps = 8;
constexpr Duration kTick = milliseconds(5);
constexpr TimePoint kFirstTime = TimePoint() + seconds(1000);

// Rows of the first table count their pushes; rows of the second depend on every bit of the pushed
// gradients and on their order.
std::vector<server::TableSpec> Tables() {
  server::TableSpec counts = test::SimpleTable("counts", 1);
  counts.init = {InitKind::kZeros, 0};
  return {counts, test::SimpleTable("values", 3, OptimizerKind::kAdam)};
}
const std::vector<server::TableSpec> kTables = Tables();

std::string EndpointOf(ProcessId server, uint32_t executor) {
  return fmt::format("sim://{}/{}", server.value(), executor);
}

// Server s has s executors.
ShardMap FirstMap() {
  std::vector<ServerInfo> servers;
  for (uint32_t s = 1; s <= kServers; ++s) {
    ServerInfo& server = servers.emplace_back(ServerInfo{ProcessId(s), {}});
    for (uint32_t e = 0; e < s; ++e) server.endpoints.push_back(EndpointOf(server.id, e));
  }
  return MakeShardMap(MapVersion(1), kShards, std::move(servers));
}

View ViewOf(const ShardMap& map) { return {Generation(1), ViewNumber(1), map, {}}; }

// A request to an executor, or an answer to a worker.
struct Letter {
  std::string endpoint;
  uint32_t worker = 0;
  bool answer = false;
  Frames frames;
};

// How often each contribution, named by (step, slice, shard, piece), arrived.
using Arrivals = std::map<std::tuple<Step, SliceIndex, ShardId, uint32_t>, uint32_t>;

// An executor and its shards.
class SimExecutor {
 public:
  SimExecutor(const ShardMap& map, ProcessId server, uint32_t executor)
      : shards_({.tables = kTables,
                 .slices = kSlices,
                 .view = ViewOf(map),
                 .self = server,
                 .executor = executor,
                 .executors = static_cast<uint32_t>(map.FindServer(server)->endpoints.size())}),
        frontend_(WireTables(), seconds(5)) {
    frontend_.Serve(&shards_, &links_, &copies_, false, answers_);
  }

  static std::vector<WireTable> WireTables() { return {{1}, {3}}; }

  void OnMessage(TimePoint now, PeerMessage message) {
    frontend_.OnMessage(now, std::move(message), answers_);
  }
  std::vector<PeerMessage> Turn(TimePoint now) {
    frontend_.OnTick(now, answers_);
    return std::exchange(answers_, {});
  }
  server::ShardSet& shards() { return shards_; }

 private:
  server::ShardSet shards_;
  server::ChainLinks links_;
  server::ShardCopies copies_{0};
  server::DataFrontend frontend_;
  std::vector<PeerMessage> answers_;
};

// A worker that computes the slices of its rank, step by step: it pulls and checks, pushes, waits,
// enters the barrier, and completes the step.
class SimWorker {
 public:
  SimWorker(const ShardMap& map, uint32_t rank) : rank_(rank), book_(ViewOf(map), Options()) {}

  static worker::RequestBook::Options Options() {
    return {.wire_tables = {0, 1},
            .tables = SimExecutor::WireTables(),
            .timeout = seconds(60),
            .resend_after = milliseconds(400),
            .message_bytes_max = 400};  // Small, so that a shard's rows need more than one piece.
  }
  // Distinct keys, different for each slice of a step.
  static std::vector<Key> KeysOf(uint64_t seed, Step step, SliceIndex slice) {
    std::set<Key> keys;
    for (uint32_t i = 0; i < 40; ++i) {
      keys.insert(Philox(seed, step * kSlices + slice, i)[0] % kKeys);
    }
    return {keys.begin(), keys.end()};
  }

  void Advance(TimePoint now, uint64_t seed, Step passed) {
    if (step_ == kSteps) return;
    if (state_ == State::kBegin) BeginPulls(now, seed);
    if (state_ == State::kPulling && !AwaitsRows()) CheckAndPush(now, seed);
    if (state_ == State::kPushing && !book_.AwaitedBefore(step_ + 1)) state_ = State::kBarrier;
    // All workers are in the barrier of this step, or past it.
    if (state_ == State::kBarrier && passed > step_) {
      for (auto& letter : book_.Complete(step_)) complete_.push_back(std::move(letter));
      ++step_;
      state_ = State::kBegin;
    }
    const Status late = book_.CheckTimes(now);
    EXPECT_TRUE(late.ok()) << ToText(late);
  }
  // The number of steps whose barrier this worker has entered.
  Step entered() const { return step_ + (state_ == State::kBarrier ? 1 : 0); }
  bool done() const { return step_ == kSteps; }

  std::vector<worker::RequestBook::Outgoing> TakeOutgoing(TimePoint now) {
    std::vector<worker::RequestBook::Outgoing> letters = std::exchange(complete_, {});
    for (auto& letter : book_.TakeOutgoing(now)) letters.push_back(std::move(letter));
    return letters;
  }
  worker::RequestBook& book() { return book_; }

 private:
  enum class State { kBegin, kPulling, kPushing, kBarrier };
  struct Slice {
    SliceIndex number = 0;
    worker::LookupPlan plan;
  };

  static worker::LookupPlan PlanOf(const std::vector<Key>& keys) {
    worker::LookupPlan plan;
    plan.tables.resize(2);
    for (uint32_t s = 0; s < kShards; ++s) {
      for (uint32_t t = 0; t < 2; ++t) {
        const auto first = static_cast<uint32_t>(plan.tables[t].size());
        for (const Key key : keys) {
          if (ShardOf(kTables[t].id, key, kShards) == ShardId(s)) plan.tables[t].push_back(key);
        }
        const auto rows = static_cast<uint32_t>(plan.tables[t].size()) - first;
        if (rows > 0) plan.groups.push_back({ShardId(s), t, first, rows});
      }
    }
    return plan;
  }

  void BeginPulls(TimePoint now, uint64_t seed) {
    slices_.clear();
    for (SliceIndex k = rank_; k < kSlices; k += kWorkers) {
      slices_.push_back(std::make_unique<Slice>(Slice{k, PlanOf(KeysOf(seed, step_, k))}));
      book_.BeginPull(now, slices_.back()->plan, step_, PullMode::kTrain);
    }
    state_ = State::kPulling;
  }
  bool AwaitsRows() const {
    return std::ranges::any_of(slices_,
                               [&](const auto& s) { return book_.Awaited(s->plan).has_value(); });
  }

  // Checks that a row of the first table is minus the number of slices of earlier steps that used
  // its key.
  void CheckAndPush(TimePoint now, uint64_t seed) {
    for (const auto& slice : slices_) {
      worker::PulledRows rows;
      book_.BeginRows(slice->plan, rows);
      book_.TakeRows(slice->plan, rows);
      const std::vector<Key>& keys = slice->plan.tables[0];
      for (size_t i = 0; i < keys.size(); ++i) {
        EXPECT_EQ(rows.table(0)[i], -CountOf(seed, keys[i])) << "step " << step_;
      }
      const std::vector<float> ones(keys.size(), 1.0f);
      std::vector<float> gradients;
      for (const Key key : slice->plan.tables[1]) {
        float row[3];
        FillNormal(seed ^ MixBits(key), step_ * kSlices + slice->number, row);
        gradients.insert(gradients.end(), row, row + 3);
      }
      const std::span<const float> spans[] = {ones, gradients};
      book_.BeginPush(now, {.step = step_, .slice = slice->number, .slices = kSlices}, slice->plan,
                      spans);
    }
    state_ = State::kPushing;
  }
  float CountOf(uint64_t seed, Key key) const {
    float count = 0;
    for (Step step = 0; step < step_; ++step) {
      for (SliceIndex k = 0; k < kSlices; ++k) {
        count += static_cast<float>(std::ranges::count(KeysOf(seed, step, k), key));
      }
    }
    return count;
  }

  const uint32_t rank_;
  worker::RequestBook book_;
  Step step_ = 0;
  State state_ = State::kBegin;
  std::vector<std::unique_ptr<Slice>> slices_;
  std::vector<worker::RequestBook::Outgoing> complete_;
};

class MoveSim {
 public:
  explicit MoveSim(uint64_t seed) : seed_(seed), network_(seed), map_(FirstMap()) {
    for (const ServerInfo& server : map_.servers) {
      for (uint32_t e = 0; e < server.endpoints.size(); ++e) {
        executors_.emplace(server.endpoints[e], std::make_unique<SimExecutor>(map_, server.id, e));
      }
    }
    for (uint32_t w = 0; w < kWorkers; ++w) {
      workers_.push_back(std::make_unique<SimWorker>(map_, w));
    }
  }

  void Misbehave(const Faults& faults) { network_.Misbehave(faults); }

  // Hands a shard and its content to another server. The old and the new server know at once; if
  // not `tell_all`, the others learn of it later.
  void Move(ShardId shard, ProcessId to, bool tell_all) {
    const ProcessId from = map_.chains[shard.value()].head();
    if (from == to) return;
    map_.version = MapVersion(map_.version.value() + 1);
    map_.chains[shard.value()] = {map_.version, {to}};
    moved_.insert(shard);
    server::ShardSet& source = SetOf(from, shard);
    server::ShardSet& target = SetOf(to, shard);
    server::Shard& old = *source.Find(shard);
    while (target.HasRowsToRemove()) target.RemoveRows();  // It may have been there before.
    server::Shard& copy = target.Add(shard);
    for (uint32_t t = 0; t < kTables.size(); ++t) CopyRows(old.table(t), copy.table(t));
    copy.SetClock(old.TakeClock());
    copy.SetPosition(old.position());
    source.Remove(shard);
    for (auto& [endpoint, executor] : executors_) {
      const ProcessId server = executor->shards().self();
      if (tell_all || server == from || server == to) executor->shards().SetMap(map_);
    }
    untold_ = !tell_all;
  }
  void TellAll() {
    if (std::exchange(untold_, false)) {
      for (auto& [endpoint, executor] : executors_) executor->shards().SetMap(map_);
    }
  }

  void Tick() {
    now_ += kTick;
    Step passed = kSteps;
    for (const auto& worker : workers_) passed = std::min(passed, worker->entered());
    for (uint32_t w = 0; w < kWorkers; ++w) {
      workers_[w]->Advance(now_, seed_, passed);
      Send(w);
    }
    for (Letter& letter : network_.Take(now_)) Deliver(std::move(letter));
    for (auto& [endpoint, executor] : executors_) {
      for (PeerMessage& answer : executor->Turn(now_)) {
        const auto worker = static_cast<uint32_t>(std::stoul(answer.peer));
        network_.Put(now_, {endpoint, worker, true, std::move(answer.frames)});
      }
      CheckClock(endpoint, executor->shards());
    }
  }

  bool done() const {
    return std::ranges::all_of(workers_, [](const auto& worker) { return worker->done(); });
  }
  // After the workers' end, applies the last completed steps and returns the reports of all tables.
  std::vector<TableReport> Reports() {
    std::vector<TableReport> reports = server::ReportTables(kTables, {});
    std::map<ShardId, uint32_t> owners;
    for (auto& [endpoint, executor] : executors_) {
      server::ShardSet& set = executor->shards();
      set.Advance(kSteps);
      for (const server::Shard& shard : set.shards()) {
        ++owners[shard.id()];
        EXPECT_EQ(shard.now(), kSteps);
      }
      server::AddReports(reports, server::ReportTables(kTables, set.shards()));
    }
    EXPECT_EQ(owners.size(), kShards);
    for (const auto& [shard, count] : owners) EXPECT_EQ(count, 1u) << shard.value();
    return reports;
  }
  uint64_t Below(uint64_t bound) { return network_.Below(bound); }
  bool Chance(double probability) { return network_.Chance(probability); }
  const Arrivals& arrivals() const { return arrivals_; }
  const std::set<ShardId>& moved() const { return moved_; }

 private:
  server::ShardSet& SetOf(ProcessId server, ShardId shard) {
    const size_t executors = map_.FindServer(server)->endpoints.size();
    return executors_.at(EndpointOf(server, ShardMap::ExecutorOf(shard, executors)))->shards();
  }
  static void CopyRows(const server::EmbeddingTable& from, server::EmbeddingTable& to) {
    std::vector<std::byte> record(from.record_bytes());
    for (const server::KeyRow& row : from.SortedRows()) {
      from.CopyRecord(row, record);
      ASSERT_TRUE(to.Restore(row.key, record).ok());
    }
  }
  void Send(uint32_t w) {
    worker::RequestBook& book = workers_[w]->book();
    for (auto& letter : workers_[w]->TakeOutgoing(now_)) {
      const std::string& endpoint = book.routes().executors()[letter.executor].endpoint;
      network_.Put(now_, {endpoint, w, false, std::move(letter.frames)});
    }
  }
  void Deliver(Letter letter) {
    if (!letter.answer) {
      Note(letter.frames);
      executors_.at(letter.endpoint)
          ->OnMessage(now_, {std::to_string(letter.worker), std::move(letter.frames)});
      return;
    }
    worker::RequestBook& book = workers_[letter.worker]->book();
    const auto executors = book.routes().executors();
    const auto at =
        std::ranges::find(executors, letter.endpoint, &worker::Routes::Executor::endpoint);
    ASSERT_NE(at, executors.end());
    const Status status = book.OnAnswer(now_, static_cast<uint32_t>(at - executors.begin()),
                                        std::move(letter.frames));
    ASSERT_TRUE(status.ok()) << ToText(status);
  }
  void Note(const Frames& frames) {
    const auto request = DecodeDataRequest(frames, SimExecutor::WireTables());
    ASSERT_TRUE(request.ok());
    if (request->kind != DataRequest::Kind::kPush) return;
    for (const ShardPiece& piece : request->push.pieces) {
      ++arrivals_[{request->push.step, request->push.slice, piece.shard, piece.piece}];
    }
  }
  // Checks that a shard's clock never goes back, wherever the shard is.
  void CheckClock(const std::string& endpoint, const server::ShardSet& set) {
    for (const server::Shard& shard : set.shards()) {
      Step& last = clocks_[shard.id()];
      EXPECT_GE(shard.now(), last) << endpoint;
      last = shard.now();
    }
  }

  const uint64_t seed_;
  TimePoint now_ = kFirstTime;
  SimNetwork<Letter> network_;
  ShardMap map_;
  bool untold_ = false;
  std::map<std::string, std::unique_ptr<SimExecutor>> executors_;
  std::vector<std::unique_ptr<SimWorker>> workers_;
  std::map<ShardId, Step> clocks_;
  std::set<ShardId> moved_;
  Arrivals arrivals_;
};

struct Story {
  double move = 0;  // Probability of a move in a tick.
  bool tell_all = true;
  Faults faults;
};

std::vector<TableReport> Tell(MoveSim& sim, const Story& story) {
  sim.Misbehave(story.faults);
  for (int tick = 0; tick < 20'000 && !sim.done(); ++tick) {
    sim.Tick();
    if (sim.Chance(story.move)) {
      sim.Move(ShardId(static_cast<uint32_t>(sim.Below(kShards))),
               ProcessId(static_cast<uint32_t>(1 + sim.Below(kServers))), story.tell_all);
    } else if (sim.Chance(0.1)) {
      sim.TellAll();
    }
  }
  EXPECT_TRUE(sim.done());
  return sim.Reports();
}

void ExpectEqual(const std::vector<TableReport>& got, const std::vector<TableReport>& want) {
  for (size_t t = 0; t < want.size(); ++t) {
    EXPECT_EQ(got[t].rows, want[t].rows) << t;
    EXPECT_EQ(got[t].checksum_low, want[t].checksum_low) << t;
    EXPECT_EQ(got[t].checksum_high, want[t].checksum_high) << t;
  }
}

std::vector<TableReport> Undisturbed(uint64_t seed) {
  MoveSim sim(seed);
  return Tell(sim, {});
}

TEST(MoveShard, InMidStepLosesAndDoublesNothing) {
  for (const uint64_t seed : SimSeeds(300)) {
    SCOPED_TRACE(Repeat(seed));
    const Faults faults{.drop = 0.1, .duplicate = 0.1, .delay_max = milliseconds(60)};
    MoveSim sim(seed);
    ExpectEqual(Tell(sim, {.move = 0.1, .tell_all = seed % 2 == 0, .faults = faults}),
                Undisturbed(seed));
    EXPECT_FALSE(sim.moved().empty());
    if (testing::Test::HasFailure()) return;
  }
}

// On a network without faults, and with servers that know the map, every piece for a shard that
// does not move arrives exactly once.
TEST(MoveShard, DisturbsNoRequestOfAnotherShard) {
  for (const uint64_t seed : SimSeeds(300)) {
    SCOPED_TRACE(Repeat(seed));
    MoveSim sim(seed);
    ExpectEqual(Tell(sim, {.move = 0.05, .faults = {.delay_max = milliseconds(30)}}),
                Undisturbed(seed));
    for (const auto& [piece, times] : sim.arrivals()) {
      if (!sim.moved().contains(std::get<ShardId>(piece))) {
        EXPECT_EQ(times, 1u);
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace dt
