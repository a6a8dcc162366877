#include "server/chain/copy_rows.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

namespace dt::server {
namespace {

std::string BytesOfRows(const std::vector<uint32_t>& sizes) {
  std::string bytes;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    std::ranges::fill(AppendRow(i, Key{100} + i, sizes[i], bytes), std::byte(i + 1));
  }
  return bytes;
}
Result<std::vector<CopiedRow>> Read(std::string_view bytes) {
  return RowsIn(std::as_bytes(std::span(bytes)));
}

TEST(CopyRows, RowsOfAllSizesSurvive) {
  const std::vector<uint32_t> sizes = {0, 1, 7, 8, 9, 64, 1000};
  const std::string bytes = BytesOfRows(sizes);
  EXPECT_EQ(bytes.size() % 8, 0u);
  const auto rows = Read(bytes);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), sizes.size());
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const CopiedRow& row = (*rows)[i];
    EXPECT_EQ(row.table, i);
    EXPECT_EQ(row.key, Key{100} + i);
    EXPECT_EQ(row.record.size(), sizes[i]);
    EXPECT_EQ(std::ranges::count(row.record, std::byte(i + 1)), std::ptrdiff_t{sizes[i]});
  }
  EXPECT_TRUE(Read("")->empty());
}

TEST(CopyRows, EveryCutIsRefusedOrEndsBetweenRows) {
  const std::string bytes = BytesOfRows({5, 8, 0});
  size_t whole = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto rows = Read(std::string_view(bytes).substr(0, size));
    whole += rows.ok();
    EXPECT_TRUE(rows.ok() || rows.status().code() == StatusCode::kOutOfRange) << size;
  }
  EXPECT_EQ(whole, 3u) << "no row, one row, two rows";
}

TEST(CopyRows, ASizeBeyondTheEndIsRefused) {
  for (const uint32_t size : {9u, 0x7fffffffu, 0xfffffff8u, 0xffffffffu}) {
    std::string bytes = BytesOfRows({8});
    std::memcpy(bytes.data() + 4, &size, sizeof(size));
    EXPECT_FALSE(Read(bytes).ok()) << size;
  }
}

}  // namespace
}  // namespace dt::server
