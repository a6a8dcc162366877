#include "server/table/row_slabs.h"

#include <cstring>
#include <set>

#include <gtest/gtest.h>

namespace dt::server {
namespace {

TEST(RowSlabs, RowsAndHeadersDoNotOverlapAndDoNotMove) {
  for (const uint32_t row_bytes : {4u, 8u, 24u, 56u, 136u, 4096u, 5000u, 200'000u}) {
    RowSlabs slabs(row_bytes);
    // Large rows need more than one slab.
    const uint32_t rows = std::min(40'000u, (96u << 20) / row_bytes);
    std::vector<std::byte*> places;
    for (uint32_t n = 0; n < rows; ++n) {
      ASSERT_EQ(slabs.Add(), n);
      places.push_back(slabs.row(n));
      ASSERT_EQ(std::to_integer<int>(places[n][row_bytes - 1]), 0);
      ASSERT_EQ(slabs.header(n).last_push(), 0u);
      std::memset(places[n], static_cast<int>(n % 251) + 1, row_bytes);
      slabs.header(n) = {n + 1, 1};
    }
    for (uint32_t n = 0; n < rows; ++n) {
      ASSERT_EQ(slabs.row(n), places[n]);
      ASSERT_EQ(std::to_integer<uint32_t>(places[n][0]), n % 251 + 1) << n << " of " << row_bytes;
      ASSERT_EQ(std::to_integer<uint32_t>(places[n][row_bytes - 1]), n % 251 + 1);
      ASSERT_EQ(slabs.header(n).last_push(), n + 1);
    }
    EXPECT_EQ(slabs.bytes(), uint64_t{rows} * (row_bytes + sizeof(RowHeader)));
  }
}

TEST(RowSlabs, RowsOfWholeCacheLinesLieOnThem) {
  RowSlabs slabs(256);
  for (uint32_t n = 0; n < 1000; ++n) {
    slabs.Add();
    ASSERT_EQ(reinterpret_cast<uintptr_t>(slabs.row(n)) % 64, 0u);
  }
}

TEST(RowSlabs, AShortRowAndItsHeaderShareACacheLine) {
  for (const uint32_t row_bytes : {8u, 24u, 56u}) {
    RowSlabs slabs(row_bytes);
    for (uint32_t n = 0; n < 1000; ++n) {
      slabs.Add();
      const auto row = reinterpret_cast<uintptr_t>(slabs.row(n));
      ASSERT_EQ(row / 64, reinterpret_cast<uintptr_t>(&slabs.header(n)) / 64);
      ASSERT_EQ(row / 64, (row + row_bytes - 1) / 64);
    }
  }
}

TEST(RowSlabs, ClearForgetsAll) {
  RowSlabs slabs(1 << 20);
  for (int n = 0; n < 100; ++n) slabs.Add();
  slabs.row(99)[(1 << 20) - 1] = std::byte{1};
  slabs.Clear();
  EXPECT_EQ(slabs.bytes(), 0u);
  EXPECT_EQ(slabs.Add(), 0u);
  EXPECT_EQ(std::to_integer<int>(slabs.row(0)[0]), 0);
}

TEST(RowSlabs, PlacesOfRemovedRowsAreUsedAgain) {
  RowSlabs slabs(8);
  for (uint32_t n = 0; n < 100; ++n) slabs.Add();
  const uint64_t bytes = slabs.bytes();
  for (const uint32_t n : {3u, 97u, 50u}) slabs.Remove(n);
  EXPECT_EQ(slabs.count(), 97u);
  EXPECT_EQ(slabs.free(), 3u);
  std::set<uint32_t> again;
  for (int i = 0; i < 3; ++i) again.insert(slabs.Add());
  EXPECT_EQ(again, (std::set<uint32_t>{3, 50, 97}));
  EXPECT_EQ(slabs.Add(), 100u);
  EXPECT_EQ(slabs.bytes(), bytes + 16);
}

}  // namespace
}  // namespace dt::server
