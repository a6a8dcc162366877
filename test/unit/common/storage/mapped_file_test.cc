#include "common/storage/mapped_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

TEST(MappedFile, HoldsTheBytes) {
  const test::ScratchFolder temp;
  std::ofstream(temp / "f") << "bytes";
  std::ofstream(temp / "empty");
  const auto file = *MappedFile::Open(temp / "f");
  EXPECT_EQ(file->bytes().size(), 5u);
  EXPECT_EQ(file->bytes()[4], std::byte{'s'});
  EXPECT_TRUE((*MappedFile::Open(temp / "empty"))->bytes().empty());
  EXPECT_EQ(MappedFile::Open(temp / "absent").status().code(), StatusCode::kNotFound);
}

TEST(MappedFileDeathTest, AFileThatIsCutIsNamed) {
  const test::ScratchFolder temp;
  std::ofstream(temp / "f") << std::string(1 << 20, 'x');
  const auto file = *MappedFile::Open(temp / "f");
  const auto cut_and_read = [&] {
    std::filesystem::resize_file(temp / "f", 10);
    const volatile std::byte last = file->bytes().back();
    std::exit(static_cast<int>(last));
  };
  EXPECT_EXIT(cut_and_read(), testing::ExitedWithCode(1), "/f was cut while it was in use");
}

}  // namespace
}  // namespace dt
