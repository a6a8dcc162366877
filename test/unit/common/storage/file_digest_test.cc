#include "common/storage/file_digest.h"

#include <fstream>

#include <gtest/gtest.h>

#include "common/base/hash.h"
#include "test/support/scratch_folder.h"

namespace dt {
namespace {

TEST(FileDigest, EqualsTheHashOfTheContent) {
  const test::ScratchFolder temp;
  for (const size_t size : {0u, 1u, 300u, 1u << 20, (3u << 20) + 7}) {
    std::string content(size, '\0');
    for (size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 7 + i / 256);
    std::ofstream(temp / "f", std::ios::binary) << content;
    const auto digest = DigestOf(temp / "f");
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_EQ(digest->bytes, size);
    EXPECT_EQ(digest->digest, HashString(content));
  }
}

TEST(FileDigest, AbsentFilesAndFoldersAreNamed) {
  const test::ScratchFolder temp;
  EXPECT_EQ(DigestOf(temp / "none").status().code(), StatusCode::kNotFound);
  const auto folder = DigestOf(temp.path());
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(ToText(folder.status()).find(temp.path()), std::string::npos);
}

}  // namespace
}  // namespace dt
