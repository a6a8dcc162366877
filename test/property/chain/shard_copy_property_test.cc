// Goal: the copy of a shard is the shard, whatever happens to its rows while it is made: they are
// pushed to, appear, leave memory and come back, expire, are saved. Method: seeded steps on shards
// with a memory budget for a fraction of the rows; the copy goes on with the pushes after its last
// part. Reference: the same shard on its own, all in memory; values and checksums are compared bit
// for bit.
#include <deque>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "server/chain/shard_copies.h"
#include "server/chain/shard_copy.h"
#include "server/shard/checksum.h"
#include "test/support/scratch_folder.h"
#include "test/support/tiered_shards.h"

namespace dt::server {
namespace {

using test::TieredShards;

constexpr uint32_t kJobShards = 4, kSlices = 2;
constexpr ShardId kCopied{1};
constexpr uint64_t kMemory = 1 << 20, kAllInMemory = 1 << 30;
constexpr uint64_t kSeeds = 6;
constexpr Step kStepsBefore = 80;
constexpr int kStepsMax = 400, kStepsAfter = 25;

std::vector<TableSpec> Tables() {
  const TableSpec wide = test::SimpleTable("wide", 48, OptimizerKind::kAdam);
  TableSpec seldom = test::SimpleTable("seldom", 8, OptimizerKind::kAdam);
  seldom.life.admission_pushes = 2;
  seldom.life.sketch_bytes = 1 << 10;
  TableSpec thin = test::SimpleTable("thin", 1, OptimizerKind::kAdagrad);
  thin.life.expiry_steps = 30;
  return {wide, seldom, thin};
}

using RowSums = std::vector<std::array<uint64_t, 3>>;
// Of the shard that is copied.
RowSums SumsOf(TieredShards& of) {
  std::vector<TableReport> reports = ReportTables(Tables(), {of.shards().Find(kCopied), 1});
  const Status visited = of.tier().VisitRowsBelow(
      [&](const EmbeddingTable& table, Key key, std::span<const std::byte> record) {
        if (table.shard() == kCopied) AddRowBelow(table, key, record, reports);
      });
  EXPECT_TRUE(visited.ok()) << visited;
  RowSums sums;
  for (const TableReport& r : reports) sums.push_back({r.rows, r.checksum_low, r.checksum_high});
  return sums;
}

class CopyStory {
 public:
  CopyStory(uint64_t seed, const std::string& folder)
      : seed_(seed),
        folder_(folder),
        giver_(SetOf(test::AllShards(kJobShards)), folder + "/giver", kMemory),
        reference_(SetOf({kCopied}), folder + "/reference", kAllInMemory) {}

  void Go() {
    int after = 0;
    for (int i = 0; i < kStepsMax && after < kStepsAfter && !Failed(); ++i) {
      if (step_ == kStepsBefore || (step_ == again_at_ && !ended_)) BeginCopy();
      Train();
      if (step_ >= kStepsBefore && Below(4) == 0) Save();
      after += ended_ ? 1 : 0;
    }
    ASSERT_TRUE(ended_) << "the copy does not keep up with the changes";
    EXPECT_EQ(SumsOf(*taker_), SumsOf(reference_));
    EXPECT_EQ(SumsOf(giver_), SumsOf(reference_));
    EXPECT_GT(most_below_, 500u) << "the disk was hardly used";
  }
  uint64_t parts_made() const { return parts_made_; }
  // Of these, while rows were being saved.
  uint64_t while_saving() const { return while_saving_; }

 private:
  static ShardSetOptions SetOf(const std::vector<ShardId>& ours) {
    return test::SetOf(Tables(), kSlices, kJobShards, ours);
  }
  static bool Failed() { return testing::Test::HasFailure(); }
  uint32_t Below(uint32_t bound) { return Philox(seed_, 0, count_++)[0] % bound; }
  // Ever more keys; some far more often than others.
  Key DrawKey() {
    const auto most = static_cast<uint32_t>(2000 + 100 * step_);
    return MixBits(Below(Below(3) < 2 ? most : most / 20));
  }

  // From the beginning, to an empty shard.
  void BeginCopy() {
    copy_.reset();
    parts_.clear();
    taker_.reset();
    // As the map has it while it is copied.
    ShardSetOptions options = SetOf({kCopied});
    options.view.map.chains[kCopied.value()].members = {ProcessId(2)};
    options.view.map.chains[kCopied.value()].syncing = {ProcessId(1)};
    taker_.emplace(std::move(options), folder_ + "/taker", kMemory);
    if (taker_->shards().Find(kCopied) == nullptr) taker_->shards().Add(kCopied);
    copy_.emplace(kCopied, giver_.shards(), giver_.tier());
  }

  void Train() {
    for (SliceIndex slice = 0; slice < kSlices; ++slice) {
      Push(slice);
      for (uint32_t n = copy_.has_value() ? Below(4) : 0; n > 0; --n) Copy();
      giver_.Rest(static_cast<int>(Below(3)));
    }
    ++step_;
    for (TieredShards* each : Trained()) {
      ASSERT_TRUE(each->Until([&] {
        each->shards().Advance(step_);
        return each->shards().Reached(step_);
      })) << each->tier().failure();
    }
    most_below_ = std::max(most_below_, giver_.tier().rows_below());
    Pull();
  }
  // Those that get pushes.
  std::vector<TieredShards*> Trained() {
    std::vector<TieredShards*> all = {&giver_, &reference_};
    if (ended_) all.push_back(&*taker_);
    return all;
  }
  void Push(SliceIndex slice) {
    test::RowMap rows;
    for (uint32_t n = Below(400); n > 0; --n) {
      const uint32_t table = Below(3);
      std::vector<float> gradient(Tables()[table].dim);
      for (float& g : gradient) g = static_cast<float>(Below(1000)) / 500 - 1;
      rows[{table, DrawKey()}] = gradient;
    }
    for (TieredShards* each : Trained()) {
      std::vector<ShardId> ids;
      for (const Shard& shard : each->shards().shards()) ids.push_back(shard.id());
      const test::Grouping grouping(Tables(), kJobShards, ids, rows);
      PushRequest push = grouping.Push(slice, test::kFirstStamp, step_);
      push.slice = slice;
      push.slices = kSlices;
      const Status pushed = each->shards().Push(std::move(push));
      ASSERT_TRUE(pushed.ok()) << pushed;
    }
  }
  void Pull() {
    for (int n = 0; n < 5; ++n) {
      const uint32_t table = Below(3);
      const Key key = DrawKey();
      if (ShardOf(Tables()[table].id, key, kJobShards) != kCopied) continue;
      const std::vector<float> want = reference_.Pull(table, key);
      for (TieredShards* each : Trained()) ASSERT_EQ(each->Pull(table, key), want) << step_;
    }
  }

  // One turn of the giver, and maybe one of the taker, which lags behind.
  void Copy() {
    if (!ended_) {
      Result<std::optional<CopyRequest>> part = copy_->NextPart();
      ASSERT_TRUE(part.ok()) << part.status();
      if (part->has_value()) {
        (*part)->shard = kCopied;
        ended_ = (*part)->end;
        parts_.push_back(**std::move(part));
        ++parts_made_;
        if (giver_.tier().saving()) ++while_saving_;
      }
    }
    // All before the first push that follows the last part.
    ASSERT_TRUE(ended_ ? TakeParts() : Below(2) == 0 || TakePart());
  }
  bool TakeParts() {
    while (!parts_.empty()) {
      if (!TakePart()) return false;
    }
    return true;
  }
  bool TakePart() {
    if (parts_.empty()) return true;
    Result<bool> taken = false;
    const bool done = taker_->Until([&] {
      taken = ShardCopies::Apply(parts_.front(), taker_->shards(), taker_->tier());
      return !taken.ok() || *taken;
    });
    EXPECT_TRUE(done && taken.ok()) << taken.status() << taker_->tier().failure();
    if (parts_.front().end) BecomeMember();
    parts_.pop_front();
    return done && taken.ok();
  }
  void BecomeMember() {
    ShardMap map = taker_->shards().view().map;
    map.chains[kCopied.value()].members = {ProcessId(1)};
    map.chains[kCopied.value()].syncing.clear();
    taker_->shards().SetMap(std::move(map));
  }

  // Of the giver, which goes on meanwhile.
  void Save() {
    const Step cut = step_;
    const RowSums want = SumsOf(reference_);
    const std::string folder = folder_ + "/step-" + std::to_string(cut);
    const auto saved = giver_.Save(cut, {folder, ProcessId(7), 0}, [&] {
      for (uint32_t n = 1 + Below(4); n > 0; --n) Train();
    });
    ASSERT_TRUE(saved.ok()) << saved.status();
    TieredShards other(SetOf(test::AllShards(kJobShards)), folder_ + "/other", kMemory);
    const Status loaded = other.Load(folder, cut);
    ASSERT_TRUE(loaded.ok()) << loaded;
    ASSERT_EQ(SumsOf(other), want);
  }

  const uint64_t seed_;
  const std::string folder_;
  const Step again_at_ =
      kStepsBefore + 4 + seed_ % 5;  // The copy begins anew then, if it is not complete.
  uint64_t count_ = 0;
  TieredShards giver_, reference_;
  std::optional<TieredShards> taker_;
  std::optional<ShardCopy> copy_;
  std::deque<CopyRequest> parts_;  // On their way.
  bool ended_ = false;             // The last part is made.
  Step step_ = 0;
  uint64_t most_below_ = 0, parts_made_ = 0, while_saving_ = 0;
};

TEST(ShardCopyProperty, TheCopyIsTheShard) {
  uint64_t parts = 0, while_saving = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const test::ScratchFolder folder;
    CopyStory story(seed, folder.path());
    story.Go();
    if (testing::Test::HasFailure()) return;
    parts += story.parts_made();
    while_saving += story.while_saving();
  }
  EXPECT_GT(parts, 5 * kSeeds);
  EXPECT_GT(while_saving, kSeeds);
}

}  // namespace
}  // namespace dt::server
