#include "common/base/written_paths.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "common/base/status.h"
#include "common/base/text.h"

namespace dt {
namespace {

// The registry is shared by the process, so each test uses different texts.
struct Case {
  const char *text, *shown;
};

void Expect(std::initializer_list<Case> cases) {
  for (const auto& [text, shown] : cases) {
    EXPECT_EQ(WithWrittenPaths(text), shown);
    EXPECT_EQ(WithWrittenPaths(shown), shown);
    EXPECT_EQ(Printable(text), shown);
  }
}

TEST(WrittenPaths, BeginAndEndWithAComponent) {
  NoteWrittenPath({"/vault/day1", "${VAULT}"});
  Expect({{"/vault/day1", "${VAULT}"},
          {"reading /vault/day1/a.csv: no such file", "reading ${VAULT}/a.csv: no such file"},
          {"`/vault/day1.part`, /vault/day1:7", "`${VAULT}.part`, ${VAULT}:7"},
          {"/vault/day12/a.csv", "/vault/day12/a.csv"},
          {"/vault/day1-b", "/vault/day1-b"},
          {"/mnt/vault/day1", "/mnt/vault/day1"},
          {"", ""}});
}

TEST(WrittenPaths, MayGoOnWithinAComponent) {
  NoteWrittenPath({"/shelf/part-3", "/shelf/part-${N}", true});
  Expect({{"/shelf/part-3.csv", "/shelf/part-${N}.csv"},
          {"/shelf/part-31.csv", "/shelf/part-${N}1.csv"}});
}

TEST(WrittenPaths, TheLongestIsShownAndTextsAsWrittenStay) {
  NoteWrittenPath({"/attic/box", "${ATTIC}"});
  NoteWrittenPath({"/attic/box/token", "${ATTIC}/${TOKEN:-/attic/box}"});
  Expect({{"/attic/box/token/a", "${ATTIC}/${TOKEN:-/attic/box}/a"},
          {"/attic/box/a", "${ATTIC}/a"},
          {"${ATTIC:-/attic/box}", "${ATTIC:-/attic/box}"},
          {"${/attic/box", "${/attic/box"}});
}

TEST(WrittenPaths, ShortTextsAreKeptAndWordsAreFoundBesideASlash) {
  NoteWrittenPath({"/ab", "${SHORT}"});
  NoteWrittenPath({"2031", "${YEAR}"});
  NoteWrittenPath({"samples", "${DIR}"});
  NoteWrittenPath({"tok3n", "${TOKEN}"});
  Expect({{"/ab/c", "/ab/c"},
          {"2031 samples in configs/samples/2031", "2031 samples in configs/${DIR}/${YEAR}"},
          {"samples/2031", "${DIR}/${YEAR}"},
          {"the folder tok3n cannot be made", "the folder ${TOKEN} cannot be made"}});
}

TEST(WrittenPaths, AreFoundInOtherFormsOfThePath) {
  NoteWrittenPath({"cellar/./rack9//", "${RACK}"});
  NoteWrittenPath({"/cave/rack9/*.csv", "${GLOB}"});
  const std::string absolute = std::filesystem::absolute("cellar/rack9").string();
  Expect({{"cellar/./rack9//a", "${RACK}//a"},
          {"cellar/rack9/a", "${RACK}/a"},
          {(absolute + "/a").c_str(), "${RACK}/a"},
          {"/cave/rack9/a.csv", "${GLOB}/a.csv"}});
  const std::filesystem::path link = testing::TempDir() + "/written_paths_link";
  const std::filesystem::path real = testing::TempDir() + "/written_paths_real";
  std::filesystem::create_directories(real);
  std::filesystem::create_directory_symlink(real, link);
  NoteWrittenPath({link.string(), "${LINK}"});
  EXPECT_EQ(WithWrittenPaths(std::filesystem::canonical(link).string() + "/a"), "${LINK}/a");
  std::filesystem::remove(link);
  std::filesystem::remove(real);
}

TEST(WrittenPaths, AreWhatAPersonReadsOfAStatus) {
  NoteWrittenPath({"/crypt/key5", "${CRYPT}"});
  const Status status = WithHint(
      WithWhere(Unavailable("writing {} failed", "/crypt/key5/a"), "/crypt/key5/b"), "/crypt/key5");
  EXPECT_EQ(ToText(status), "writing ${CRYPT}/a failed (${CRYPT}/b); ${CRYPT}");
  EXPECT_EQ(MessageOf(status), "writing /crypt/key5/a failed");
}

}  // namespace
}  // namespace dt
