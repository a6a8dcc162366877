#include "server/table/row_slabs.h"

#include <cstring>
#include <set>

#include <gtest/gtest.h>

namespace dt::server {
namespace {

TEST(RowSlabs, RowsDoNotOverlapAndDoNotMove) {
  for (const uint32_t row_bytes : {8u, 136u, 4096u, 5000u, 200'000u}) {
    RowSlabs slabs(row_bytes);
    const uint32_t rows = std::min(40'000u, (32u << 20) / row_bytes);
    std::vector<std::byte*> places;
    for (uint32_t n = 0; n < rows; ++n) {
      ASSERT_EQ(slabs.Add(), n);
      places.push_back(slabs.row(n));
      ASSERT_EQ(std::to_integer<int>(places[n][row_bytes - 1]), 0);
      std::memset(places[n], static_cast<int>(n % 251) + 1, row_bytes);
    }
    for (uint32_t n = 0; n < rows; ++n) {
      ASSERT_EQ(slabs.row(n), places[n]);
      ASSERT_EQ(std::to_integer<uint32_t>(places[n][0]), n % 251 + 1) << n << " of " << row_bytes;
      ASSERT_EQ(std::to_integer<uint32_t>(places[n][row_bytes - 1]), n % 251 + 1);
    }
    EXPECT_EQ(slabs.used_bytes(), uint64_t{rows} * row_bytes);
  }
}

TEST(RowSlabs, SmallTablesStaySmall) {
  RowSlabs slabs(136);
  slabs.Add();
  EXPECT_LE(slabs.bytes(), 4096u + 136u);
}

TEST(RowSlabs, AreBoundedInSize) {
  RowSlabs slabs(1 << 20);
  for (int n = 0; n < 300; ++n) slabs.Add();
  EXPECT_LE(slabs.bytes(), (300u + 64u) << 20);
  slabs.row(299)[(1 << 20) - 1] = std::byte{1};
  slabs.Clear();
  EXPECT_EQ(slabs.bytes(), 0u);
  EXPECT_EQ(slabs.Add(), 0u);
}

}  // namespace
}  // namespace dt::server
