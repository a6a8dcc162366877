#include "common/cluster/latest_view.h"

#include <thread>

#include <gtest/gtest.h>

namespace dt {
namespace {

ShardMap MapOfVersion(uint64_t version) {
  return MakeShardMap(MapVersion(version), 2, {{ProcessId(1), {"a"}}});
}

TEST(LatestView, HasNoneBeforeTheFirst) {
  EXPECT_FALSE(LatestView().NewerThan(MapVersion(0)).has_value());
}

TEST(LatestView, GivesOnlyWhatIsNewer) {
  LatestView latest;
  latest.Set(MapOfVersion(3));
  EXPECT_EQ(latest.NewerThan(MapVersion(2)), MapOfVersion(3));
  EXPECT_EQ(latest.NewerThan(MapVersion(2)), MapOfVersion(3)) << "as often as it is asked";
  EXPECT_FALSE(latest.NewerThan(MapVersion(3)).has_value());
  EXPECT_FALSE(latest.NewerThan(MapVersion(4)).has_value());
}

TEST(LatestView, AnOlderMapIsPassedOver) {
  LatestView latest;
  latest.Set(MapOfVersion(3));
  latest.Set(MapOfVersion(2));
  EXPECT_EQ(latest.NewerThan(MapVersion(1))->version, MapVersion(3));
  latest.Set(MapOfVersion(7));
  EXPECT_EQ(latest.NewerThan(MapVersion(3))->version, MapVersion(7));
}

TEST(LatestView, OneThreadSetsWhileAnotherAsks) {
  constexpr uint64_t kLast = 1000;
  LatestView latest;
  std::thread setter([&] {
    for (uint64_t version = 1; version <= kLast; ++version) latest.Set(MapOfVersion(version));
  });
  MapVersion known(0);
  while (known != MapVersion(kLast)) {
    const std::optional<ShardMap> newer = latest.NewerThan(known);
    if (!newer.has_value()) continue;
    EXPECT_GT(newer->version, known);
    known = newer->version;
  }
  setter.join();
}

}  // namespace
}  // namespace dt
