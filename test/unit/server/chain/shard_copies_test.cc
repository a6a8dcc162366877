// Goal: a shard is copied without a pause of the sender if no message is lost, and is copied at all
// if its rows change faster than the limit allows. Method: the test carries the messages of two
// servers, and time passes as it wants.
#include "server/chain/shard_copies.h"

#include <gtest/gtest.h>

#include "server/shard/checksum.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

constexpr ShardId kShard{0};
constexpr ProcessId kGiver{1}, kTaker{2};
const std::vector<TableSpec> kTables = {test::SimpleTable("a", 16)};

// The shard is on server 1, and is to be on server 2 as well.
View ViewOfCopy() {
  ShardMap map = MakeShardMap(MapVersion(1), 1, {{kGiver, {"giver"}}, {kTaker, {"taker"}}});
  map.chains[0].members = {kGiver};
  map.chains[0].syncing = {kTaker};
  return {Generation(1), ViewNumber(1), map, {}};
}

struct Side {
  Side(ProcessId self, const std::string& folder, uint64_t bytes_per_second)
      : tiered({.tables = kTables, .slices = 1, .view = ViewOfCopy(), .self = self}, folder,
               uint64_t{1} << 30),
        copies(bytes_per_second) {
    if (tiered.shards().Find(kShard) == nullptr) tiered.shards().Add(kShard);
  }
  std::vector<ChainLinks::Letter> Turn(TimePoint now) {
    std::vector<ChainLinks::Letter> letters;
    const Status worked = copies.Work(now, tiered.shards(), tiered.tier(), links, letters);
    EXPECT_TRUE(worked.ok()) << worked;
    return letters;
  }

  test::TieredShards tiered;
  ChainLinks links;
  ShardCopies copies;
};

class ShardCopiesTest : public ::testing::Test {
 protected:
  void Begin(uint64_t bytes_per_second) {
    giver_.emplace(kGiver, folder_ / "giver", bytes_per_second);
    taker_.emplace(kTaker, folder_ / "taker", 0);
  }
  // To consecutive keys.
  void Push(Key first, Key keys) {
    test::RowMap rows;
    for (Key key = first; key < first + keys; ++key) rows[{0, key}] = std::vector<float>(16, 1.0f);
    const test::Grouping grouping(kTables, 1, {kShard}, rows);
    ShardSet& shards = giver_->tiered.shards();
    ASSERT_TRUE(shards.Push(grouping.Push(0, test::kFirstStamp, step_)).ok());
    shards.Advance(++step_);
  }
  // A turn of each side; true if the copy has been completed.
  bool Turn(TimePoint now) {
    const std::vector<WireTable> wire = {{.dim = 16}};
    const std::vector<ChainLinks::Letter> parts = giver_->Turn(now);
    most_at_once_ = std::max(most_at_once_, parts.size());
    for (const ChainLinks::Letter& letter : parts) {
      Result<DataRequest> request = DecodeDataRequest(letter.frames, wire);
      EXPECT_TRUE(request.ok()) << request.status();
      bytes_ += request->copy.rows.size();
      EXPECT_TRUE(taker_->copies.OnCopy(std::move(request->copy), taker_->tiered.shards()).ok());
    }
    for (const ChainLinks::Letter& letter : taker_->Turn(now)) {
      const Result<DataRequest> request = DecodeDataRequest(letter.frames, wire);
      EXPECT_TRUE(request.ok()) << request.status();
      giver_->copies.OnCopyAck(now, request->copy_ack, giver_->tiered.shards(), giver_->links);
    }
    return !giver_->copies.TakeCopied().empty();
  }
  void ExpectEqualShards() {
    const auto x = ReportTables(kTables, giver_->tiered.shards().shards()),
               y = ReportTables(kTables, taker_->tiered.shards().shards());
    EXPECT_EQ(x[0].rows, kRows);
    EXPECT_EQ(x[0].rows, y[0].rows);
    EXPECT_EQ(x[0].checksum_low, y[0].checksum_low);
    EXPECT_EQ(x[0].checksum_high, y[0].checksum_high);
  }

  static constexpr Key kRows = 20'000;
  const test::ScratchFolder folder_;
  std::optional<Side> giver_, taker_;
  Step step_ = 0;
  size_t most_at_once_ = 0;
  uint64_t bytes_ = 0;
};

TEST_F(ShardCopiesTest, AllPartsThatComeAtOnceAreTaken) {
  Begin(0);
  Push(0, kRows);
  bool copied = false;
  for (int turn = 0; turn < 100 && !copied; ++turn) copied = Turn({});
  EXPECT_GE(most_at_once_, 2u);
  EXPECT_TRUE(copied) << "parts were dropped";
  ExpectEqualShards();
}

// A shard that has left the taker stays there until a checkpoint under way is written.
TEST_F(ShardCopiesTest, NothingIsCopiedToWhatIsToBeRemoved) {
  Begin(0);
  Push(0, kRows);
  TimePoint now = TimePoint() + seconds(1000);
  taker_->copies.Drop(kShard);
  for (int turn = 0; turn < 100; ++turn) EXPECT_FALSE(Turn(now += milliseconds(10)));
  EXPECT_EQ(ReportTables(kTables, taker_->tiered.shards().shards())[0].rows, 0u);
  EXPECT_EQ(taker_->copies.TakeDropped(), std::set<ShardId>{kShard});
  bool copied = false;
  for (int turn = 0; turn < 100 && !copied; ++turn) copied = Turn(now += milliseconds(10));
  EXPECT_TRUE(copied);
  ExpectEqualShards();
}

// All rows change every two seconds, and the limit allows a copy of them in five.
TEST_F(ShardCopiesTest, RowsThatChangeFasterThanTheLimitAreCopied) {
  const uint64_t row_bytes = 16 * sizeof(float);
  Begin(kRows * row_bytes / 5);
  Push(0, kRows);
  bool copied = false;
  TimePoint now = TimePoint() + seconds(1000);
  const TimePoint begun = now;
  for (; !copied && now < begun + seconds(40); now += milliseconds(10)) {
    Push(step_ * 100 % kRows, 100);
    copied = Turn(now);
  }
  EXPECT_TRUE(copied);
  EXPECT_GT(now, begun + seconds(5)) << "the limit holds as long as it can";
  EXPECT_LT(bytes_, 6 * kRows * row_bytes);
}

}  // namespace
}  // namespace dt::server
