// Goal: a shard is copied without a pause of the sender if no message is lost. Method: the test
// carries the messages of two servers, and no time passes.
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
  Side(ProcessId self, const std::string& folder)
      : tiered({.tables = kTables, .slices = 1, .view = ViewOfCopy(), .self = self}, folder,
               uint64_t{1} << 30) {
    if (tiered.shards().Find(kShard) == nullptr) tiered.shards().Add(kShard);
  }
  std::vector<ChainLinks::Letter> Turn() {
    std::vector<ChainLinks::Letter> letters;
    const Status worked = copies.Work({}, tiered.shards(), tiered.tier(), links, letters);
    EXPECT_TRUE(worked.ok()) << worked;
    return letters;
  }

  test::TieredShards tiered;
  ChainLinks links;
  ShardCopies copies{0};
};

TEST(ShardCopies, AllPartsThatComeAtOnceAreTaken) {
  const test::ScratchFolder folder;
  Side giver(kGiver, folder / "giver"), taker(kTaker, folder / "taker");
  test::RowMap rows;
  for (Key key = 0; key < 20'000; ++key) rows[{0, key}] = std::vector<float>(16, 1.0f);
  const test::Grouping grouping(kTables, 1, {kShard}, rows);
  ASSERT_TRUE(giver.tiered.shards().Push(grouping.Push(0, test::kFirstStamp, 0)).ok());
  giver.tiered.shards().Advance(1);

  const std::vector<WireTable> wire = {{.dim = 16}};
  std::vector<ShardCopies::Copied> copied;
  size_t at_once = 0;
  for (int turn = 0; turn < 100 && copied.empty(); ++turn) {
    const std::vector<ChainLinks::Letter> parts = giver.Turn();
    at_once = std::max(at_once, parts.size());
    for (const ChainLinks::Letter& letter : parts) {
      Result<DataRequest> request = DecodeDataRequest(letter.frames, wire);
      ASSERT_TRUE(request.ok()) << request.status();
      ASSERT_TRUE(taker.copies.OnCopy(std::move(request->copy), taker.tiered.shards()).ok());
    }
    for (const ChainLinks::Letter& letter : taker.Turn()) {
      const Result<DataRequest> request = DecodeDataRequest(letter.frames, wire);
      ASSERT_TRUE(request.ok()) << request.status();
      giver.copies.OnCopyAck({}, request->copy_ack, giver.tiered.shards(), giver.links);
    }
    copied = giver.copies.TakeCopied();
  }
  EXPECT_GE(at_once, 2u);
  ASSERT_EQ(copied.size(), 1u) << "parts were dropped";
  const auto x = ReportTables(kTables, giver.tiered.shards().shards()),
             y = ReportTables(kTables, taker.tiered.shards().shards());
  EXPECT_EQ(x[0].rows, 20'000u);
  EXPECT_EQ(x[0].rows, y[0].rows);
  EXPECT_EQ(x[0].checksum_low, y[0].checksum_low);
  EXPECT_EQ(x[0].checksum_high, y[0].checksum_high);
}

}  // namespace
}  // namespace dt::server
