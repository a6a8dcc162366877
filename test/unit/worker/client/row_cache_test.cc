#include "worker/client/row_cache.h"

#include <map>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "common/net/memory_network.h"
#include "common/wire/data.h"

namespace dt::worker {
namespace {

// One executor with all four shards. Rows of table 0 are cached, those of table 1 are not.
constexpr uint32_t kCachedDim = 2, kOtherDim = 3;

LookupPlan PlanOfKeys(const std::vector<Key>& keys) {
  LookupPlan plan;
  plan.tables = {{}, {7}};
  for (uint32_t shard = 0; shard < 4; ++shard) {
    RowGroup group{ShardId(shard), 0, static_cast<uint32_t>(plan.tables[0].size()), 0};
    for (const Key key : keys) {
      if (key % 4 != shard) continue;
      plan.tables[0].push_back(key);
      ++group.rows;
    }
    if (group.rows > 0) plan.groups.push_back(group);
    if (shard == 2) plan.groups.push_back({ShardId(2), 1, 0, 1});
  }
  return plan;
}

// Answers a pull with `clock` and rows made by `value(key)`.
class RowCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    network_ = MakeMemoryNetwork();
    auto server = network_->Bind("server");
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
    PsClient::Options options;
    options.network = network_.get();
    options.requests.wire_tables = {0, 1};
    options.requests.tables = {{kCachedDim}, {kOtherDim}};
    View view;
    view.map = MakeShardMap(MapVersion(1), 4, {{ProcessId(1), {"server"}}});
    auto client = PsClient::Open(view, std::move(options));
    ASSERT_TRUE(client.ok());
    client_ = *std::move(client);
  }

  // Does one step; returns the rows, and records the keys that were really pulled.
  std::vector<std::vector<float>> Pull(const LookupPlan& plan, Step step, Step clock) {
    cache_.Split(plan, step, pull_);
    client_->BeginPull(pull_.misses, step, PullMode::kTrain);
    Answer(clock);
    PulledRows pulled;
    EXPECT_TRUE(client_->FinishPull(pull_.misses, pulled).ok());
    cache_.Join(pulled, pull_);
    return pull_.rows;
  }

  void Answer(Step clock) {
    Result<PeerMessage> message = server_->Receive(seconds(5));
    ASSERT_TRUE(message.ok());
    const WireTable tables[] = {{kCachedDim}, {kOtherDim}};
    Result<DataRequest> request = DecodeDataRequest(std::move(message->frames), tables);
    ASSERT_TRUE(request.ok());
    std::vector<float> values;
    const std::span<const Key> keys = std::as_const(request->pull.keys).as<Key>();
    pulled_keys_.clear();
    size_t at = 0;
    for (const KeyGroup& group : request->pull.groups) {
      for (uint32_t i = 0; i < group.rows; ++i, ++at) {
        if (group.table == 0) pulled_keys_.push_back(keys[at]);
        values.insert(values.end(), tables[group.table].dim, ValueOf(keys[at], clock));
      }
    }
    DataReply reply{request->pull.request, OkStatus(),
                    Frame::CopyOf(std::as_bytes(std::span(values)))};
    reply.clock = clock;
    ASSERT_TRUE(server_->Send(message->peer, Encode(reply)).ok());
  }
  static float ValueOf(Key key, Step clock) {
    return static_cast<float>(100 * key) + static_cast<float>(clock);
  }

  std::unique_ptr<Network> network_;
  std::unique_ptr<ServerSocket> server_;
  std::unique_ptr<PsClient> client_;
  RowCache cache_{{.dims = {kCachedDim}, .rows = 64, .staleness = 3}};
  CachedPull pull_;
  std::vector<Key> pulled_keys_;
};

TEST_F(RowCacheTest, ARowServesUntilItsClockIsTooOld) {
  const LookupPlan plan = PlanOfKeys({5, 6});
  // The rows contain all pushes before step 9, so they may be used up to step 12.
  Pull(plan, 10, 9);
  EXPECT_EQ(pulled_keys_, (std::vector<Key>{5, 6}));
  for (const Step step : {11, 12}) {
    const auto rows = Pull(plan, step, 11);
    EXPECT_TRUE(pulled_keys_.empty()) << step;
    EXPECT_EQ(rows[0], (std::vector<float>{509, 509, 609, 609}));
  }
  EXPECT_EQ(Pull(plan, 13, 12)[0], (std::vector<float>{512, 512, 612, 612}));
  EXPECT_EQ(pulled_keys_, (std::vector<Key>{5, 6}));
  EXPECT_EQ(cache_.lookups(), 8u);
  EXPECT_EQ(cache_.hits(), 4u);
}

TEST_F(RowCacheTest, TablesThatAreNotKeptArePulledEveryTime) {
  const LookupPlan plan = PlanOfKeys({5});
  Pull(plan, 10, 9);
  EXPECT_EQ(Pull(plan, 11, 10)[1], std::vector<float>(kOtherDim, ValueOf(7, 10)));
}

TEST_F(RowCacheTest, NothingIsLeftAfterClear) {
  const LookupPlan plan = PlanOfKeys({5});
  Pull(plan, 10, 9);
  cache_.Clear();
  Pull(plan, 11, 10);
  EXPECT_EQ(pulled_keys_, std::vector<Key>{5});
}

// Compared with a map: every row is at its position, and none is older than the staleness allows.
TEST_F(RowCacheTest, RowsAreInTheirPlacesAndFreshEnough) {
  for (Step step = 1; step < 300; ++step) {
    std::map<Key, bool> keys;
    for (uint32_t i = 0; i < 40; ++i) {
      const PhiloxBlock bits = Philox(4, step, i);
      keys[bits[0] % (bits[1] % 2 == 0 ? 10 : 500)] = true;
    }
    std::vector<Key> list;
    for (const auto& [key, used] : keys) list.push_back(key);
    const LookupPlan plan = PlanOfKeys(list);
    const auto rows = Pull(plan, step, step - 1);
    for (size_t row = 0; row < plan.tables[0].size(); ++row) {
      const float age = ValueOf(plan.tables[0][row], step) - rows[0][row * kCachedDim];
      ASSERT_GE(age, 0.0f);
      ASSERT_LE(age, 3.0f);  // The row contains all pushes of steps before step - 3.
      ASSERT_EQ(rows[0][row * kCachedDim], rows[0][row * kCachedDim + 1]);
    }
  }
  EXPECT_GT(cache_.hits(), cache_.lookups() / 10);
  EXPECT_LT(cache_.hits(), cache_.lookups());
}

}  // namespace
}  // namespace dt::worker
