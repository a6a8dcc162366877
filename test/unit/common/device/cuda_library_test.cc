#include "common/device/cuda_library.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dt {
namespace {

using ::testing::HasSubstr;

std::string LibraryProblem(const Status& status) {
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_FALSE(ProblemOf(status).hint.empty()) << status;
  return ToText(status);
}

TEST(CudaLibrary, AbsentFileIsOneSentenceWithThePath) {
  const std::string text = LibraryProblem(CudaLibrary::Open("/nonexistent/lib.so").status());
  EXPECT_THAT(text, HasSubstr("no CUDA library"));
  EXPECT_THAT(text, HasSubstr("/nonexistent/lib.so"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(CudaLibrary, FileThatIsNoLibraryIsRefused) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "not_a_library.so";
  std::ofstream(path) << "words";
  EXPECT_THAT(LibraryProblem(CudaLibrary::Open(path.string()).status()),
              HasSubstr("cannot be loaded"));
  std::filesystem::remove(path);
}

TEST(CudaLibrary, LibraryOfAnotherBuildIsRefused) {
  EXPECT_THAT(LibraryProblem(CudaLibrary::Open(DT_FAKE_CUDA_OLD).status()),
              HasSubstr("another build"));
}

TEST(CudaLibrary, TellsWhichCardsWork) {
  const Result<CudaLibrary> cuda = CudaLibrary::Open(DT_FAKE_CUDA);
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  EXPECT_EQ(cuda->CountDevices().value(), 3);
  EXPECT_STREQ(cuda->Describe(1)->name, "fake card 1");
  EXPECT_THAT(LibraryProblem(cuda->Describe(3).status()), HasSubstr("invalid device ordinal"));
  EXPECT_TRUE(cuda->Probe(0).ok());
  EXPECT_THAT(ToText(cuda->Probe(1)), HasSubstr("wrong sums"));
  EXPECT_THAT(LibraryProblem(cuda->Probe(2)), HasSubstr("no kernel image"));
}

#ifdef DT_REAL_CUDA
TEST(CudaLibrary, RealOneLoadsAndWorksOrSaysWhyNot) {
  const Result<CudaLibrary> cuda = CudaLibrary::Open(DT_REAL_CUDA);
  ASSERT_TRUE(cuda.ok()) << cuda.status();
  const Result<int> count = cuda->CountDevices();
  if (!count.ok()) {
    EXPECT_THAT(LibraryProblem(count.status()), HasSubstr("no CUDA card can be used"));
    EXPECT_FALSE(cuda->Probe(0).ok());
    return;
  }
  for (int i = 0; i < *count; ++i) {
    EXPECT_TRUE(cuda->Probe(i).ok()) << cuda->Probe(i);
    EXPECT_GT(cuda->Describe(i)->memory_bytes, 0u);
  }
}
#endif

}  // namespace
}  // namespace dt
