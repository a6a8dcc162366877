// Goal: what commands print is read as messages by offset, again where it is asked for again; a
// command that ends, fails or prints an endless line is an error of one sentence. Method: small
// shell commands.
#include "worker/data/stream/command_reader.h"

#include <gmock/gmock.h>

#include "common/base/clock.h"
#include "common/base/pause.h"
#include "test/unit/worker/data/data_files.h"

namespace dt::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CommandReaderTest : public ::testing::Test {
 protected:
  void Run(const std::string& command, uint32_t partitions = 1) {
    reader_.emplace(StreamConfig{.command = command, .partitions = partitions},
                    [this] { return interrupted_; });
  }
  // The messages, or why there are none.
  std::vector<std::string> Read(uint32_t partition, OffsetRange offsets) {
    std::vector<std::string> found;
    const Status read = reader_->Read(partition, offsets, [&](const MessageReader::Message& each) {
      found.push_back(fmt::format("{}:{}", each.offset, each.text));
      return OkStatus();
    });
    return read.ok() ? found : std::vector<std::string>{ToText(read)};
  }
  std::string WhyNot(OffsetRange offsets) { return Read(0, offsets).at(0); }

  TempDir dir_;
  Status interrupted_;
  std::optional<CommandReader> reader_;
};

constexpr const char* kCounts =
    "i=$DOVETAIL_OFFSET; while true; do echo \"$DOVETAIL_PARTITION,$i\"; i=$((i + 1)); done";

TEST_F(CommandReaderTest, MessagesHaveTheirOffsets) {
  Run(kCounts, 2);
  EXPECT_EQ(*reader_->Partitions(), 2u);
  EXPECT_THAT(Read(1, {5, 7}), ElementsAre("5:1,5", "6:1,6"));
  EXPECT_THAT(Read(1, {7, 8}), ElementsAre("7:1,7")) << "it goes on";
  EXPECT_THAT(Read(1, {6, 8}), ElementsAre("6:1,6", "7:1,7")) << "again";
  EXPECT_THAT(Read(0, {0, 1}), ElementsAre("0:0,0"));
}

TEST_F(CommandReaderTest, TheEndGrows) {
  const std::string file = dir_.Write("rows", "a\nb\n");
  Run("tail -n +$((DOVETAIL_OFFSET + 1)) -f " + file);
  const auto reaches = [&](uint64_t end) {
    return PollUntil(SystemClock().Now() + seconds(20), milliseconds(5), [&] {
      const Result<uint64_t> now = reader_->End(0, 1);
      EXPECT_TRUE(now.ok()) << now.status();
      return !now.ok() || *now >= end;
    });
  };
  EXPECT_TRUE(reaches(2));
  std::ofstream(file, std::ios::app) << "c\nd";
  EXPECT_TRUE(reaches(3));
  EXPECT_EQ(*reader_->End(0, 1), 3u) << "the last line is not whole yet";
}

TEST_F(CommandReaderTest, ProblemsAreSentences) {
  Run("echo a");
  EXPECT_THAT(WhyNot({0, 2}), HasSubstr("the command `echo a` of partition 0 has ended, before "
                                        "message 1"));
  Run("echo a; exit 3");
  EXPECT_THAT(WhyNot({0, 2}), HasSubstr("ended with status 3 after printing 2 bytes"));
  Run("head -c 20000000 /dev/zero; sleep 100");
  EXPECT_THAT(WhyNot({4, 5}), HasSubstr("message 4 has more than 16 MiB"));
}

TEST_F(CommandReaderTest, AWaitIsInterrupted) {
  Run("sleep 100");
  interrupted_ = Cancelled("the job has ended");
  EXPECT_THAT(WhyNot({0, 1}), HasSubstr("the job has ended"));
}

}  // namespace
}  // namespace dt::worker
