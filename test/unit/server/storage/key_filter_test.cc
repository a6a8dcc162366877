#include "server/storage/key_filter.h"

#include <gtest/gtest.h>

#include "common/base/hash.h"

namespace dt::server {
namespace {

TEST(KeyFilter, ForgetsNoKeyAndLetsFewOthersPass) {
  KeyFilter filter(1000);
  constexpr uint64_t kKeys = 100'000;
  EXPECT_FALSE(filter.MayContain(MixBits(1)));
  for (uint64_t key = 0; key < kKeys; ++key) filter.Add(MixBits(key));
  for (uint64_t key = 0; key < kKeys; ++key) ASSERT_TRUE(filter.MayContain(MixBits(key))) << key;
  uint64_t passed = 0;
  for (uint64_t key = kKeys; key < 2 * kKeys; ++key) passed += filter.MayContain(MixBits(key));
  EXPECT_LT(passed, kKeys / 20);
  EXPECT_LT(filter.bytes(), kKeys * 4);
}

TEST(KeyFilter, KeysAddedAgainCostNothing) {
  KeyFilter filter(1000);
  for (int round = 0; round < 50; ++round) {
    for (uint64_t key = 0; key < 900; ++key) filter.Add(MixBits(key));
  }
  EXPECT_LT(filter.bytes(), 3000u);
}

}  // namespace
}  // namespace dt::server
