// Goal: the same lines are read whatever the compression, and damage is reported in a sentence.
// Method: in-memory sources; small inputs are cut at every byte, and every byte is flipped.
#include <algorithm>
#include <fcntl.h>
#include <signal.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include "test/support/program.h"
#include "test/unit/worker/data/data_files.h"
#include "worker/data/input/block_reader.h"
#include "worker/data/input/byte_source.h"

namespace dt::worker {
namespace {

std::string Gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Zstd(std::string_view text) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(),
                                                                   ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size()));
  return out;
}

std::string Lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "1 " + std::to_string(i * 7919) + ":1 5:1\n";
  return text;
}

// Reads everything in pieces of `step` bytes.
Result<std::string> ReadAll(ByteSource& source, size_t step) {
  std::string text, piece(step, '\0');
  for (size_t got = step; got == step;) {
    DT_TRY(got, source.Read(piece));
    text.append(piece, 0, got);
  }
  return text;
}

using Maker = std::unique_ptr<ByteSource> (*)(std::unique_ptr<ByteSource>, std::string);
struct Packing {
  const char* name;
  std::string (*pack)(std::string_view);
  Maker open;
};
const Packing kPackings[] = {{"gzip", Gzip, MakeGzipSource}, {"zstd", Zstd, MakeZstdSource}};

TEST(Packed, TextComesOutWhole) {
  for (const Packing& packing : kPackings) {
    for (const int lines : {0, 1, 1000, 200000}) {
      const std::string text = Lines(lines);
      // Two compressed streams in sequence are one text.
      const std::string packed = packing.pack(text) + packing.pack("end");
      for (const size_t step : {size_t{7}, size_t{1} << 20}) {
        if (step < 100 && lines > 1000) continue;
        const auto source = packing.open(MakeMemorySource(packed), "x");
        const Result<std::string> found = ReadAll(*source, step);
        ASSERT_TRUE(found.ok()) << found.status();
        ASSERT_EQ(*found, text + "end") << packing.name << " " << lines << " " << step;
      }
    }
  }
}

TEST(Packed, EveryCutIsFound) {
  for (const Packing& packing : kPackings) {
    const std::string packed = packing.pack(Lines(20));
    for (size_t size = 1; size < packed.size(); ++size) {
      const auto source = packing.open(MakeMemorySource({packed.data(), size}), "x.bin");
      const Result<std::string> found = ReadAll(*source, 1000);
      ASSERT_EQ(found.status().code(), StatusCode::kOutOfRange) << packing.name << " " << size;
      ASSERT_EQ(MessageOf(found.status()).substr(0, 13),
                std::string("x.bin: the ") + packing.name[0] + packing.name[1]);
    }
  }
}

TEST(Packed, FlippedBytesNeverGiveOtherText) {
  for (const Packing& packing : kPackings) {
    const std::string text = Lines(50);
    const std::string packed = packing.pack(text);
    for (size_t at = 0; at < packed.size(); ++at) {
      std::string damaged = packed;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x24);
      const auto source = packing.open(MakeMemorySource(damaged), "x");
      const Result<std::string> found = ReadAll(*source, 1 << 16);
      // Some bytes of the gzip header do not affect the content.
      ASSERT_TRUE(!found.ok() || *found == text) << packing.name << " byte " << at;
    }
  }
}

TEST(Packed, FilesAreRecognisedByTheirFirstBytes) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "");
  config.train = {dir.Write("a.txt", Gzip("1 1:1\n")), dir.Write("b.txt", Zstd("0 2:1\n")),
                  dir.Write("c.gz", "1 3:1\n")};
  TaskPool pool(2);
  const auto data = Dataset::Open(config, Split::kTrain, pool);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(AllOf(**data).columns[1].keys, (std::vector<Key>{1, 2, 3}));
}

TEST(Packed, DamageStopsEvenWhereBadRowsAreSkipped) {
  const TempDir dir;
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, Gzip(Lines(100)).substr(0, 200));
  config.on_error = OnError::kSkip;
  const std::string error = OpenError(dir, config);
  EXPECT_EQ(error.substr(0, 42), "train.txt: the gzip data is damaged after ");
  EXPECT_NE(error.find("it ends too early"), std::string::npos) << error;
}

std::vector<std::string> BlocksOf(std::string_view text) {
  BlockReader reader(MakeMemorySource(text), "x");
  std::vector<std::string> blocks;
  for (std::string block;;) {
    EXPECT_TRUE(reader.Next(block).ok());
    if (block.empty()) return blocks;
    blocks.push_back(block);
  }
}

TEST(BlockReader, BlocksAreWholeLines) {
  for (const int lines : {1, 50000, 200000}) {
    for (const char* tail : {"", "no end"}) {
      const std::string text = Lines(lines) + tail;
      const std::vector<std::string> blocks = BlocksOf(text);
      std::string joined;
      for (size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_TRUE(i + 1 == blocks.size() || blocks[i].back() == '\n');
        joined += blocks[i];
      }
      EXPECT_EQ(joined, text);
    }
  }
}

TEST(BlockReader, LinesLongerThanABlockStayWhole) {
  const std::string line = std::string(3 * kBlockBytes + 17, 'x') + "\n";
  const std::vector<std::string> blocks = BlocksOf("a\n" + line + "b\n");
  std::string joined;
  for (const std::string& block : blocks) joined += block;
  EXPECT_EQ(joined, "a\n" + line + "b\n");
}

TEST(BlockReader, TheMarkIsTakenOffOnceAtTheStart) {
  EXPECT_EQ(BlocksOf("\xef\xbb\xbf\xef\xbb\xbfx\n"), std::vector<std::string>{"\xef\xbb\xbfx\n"});
  EXPECT_TRUE(BlocksOf("\xef\xbb\xbf").empty());
}

DataConfig PipeConfig(const TempDir& dir, std::string command) {
  DataConfig config;
  config.format = DataFormat::kCsv;
  config.command = std::move(command);
  config.columns = {Column("a", ColumnType::kId)};
  config.cache_dir = dir.path("cache");
  return config;
}

TEST(Pipe, TheCommandRunsAtEveryOpen) {
  const TempDir dir;
  const DataConfig config =
      PipeConfig(dir, "echo x >> " + dir.path("runs") + "; printf 'b,a\\n1,2\\n3,4\\n'");
  TaskPool pool(2);
  for (int run = 1; run <= 2; ++run) {
    const auto data = Dataset::Open(config, Split::kTrain, pool);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ(AllOf(**data).columns[0].keys, (std::vector<Key>{2, 4}));
    EXPECT_EQ(dir.Read("runs").size(), 2u * static_cast<size_t>(run));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path("cache")));
}

TEST(Pipe, FailuresAreSentences) {
  const TempDir dir;
  EXPECT_EQ(OpenError(dir, PipeConfig(dir, "printf 'a\\n1\\n'; exit 3")),
            "the command `printf 'a\\n1\\n'; exit 3` ended with status 3 after printing 4 bytes");
  EXPECT_EQ(OpenError(dir, PipeConfig(dir, "true")),
            "command: an empty output found, rows expected");
  EXPECT_EQ(
      OpenError(dir, PipeConfig(dir, "printf 'a\\n1\\nx\\n'")),
      "command:3: column \"a\": \"x\" found, an id from 0 to 18446744073709551615 expected; a "
      "column of texts has type: string");
}

TEST(Pipe, ACommandThatIsNotReadToItsEndIsEnded) {
  const TempDir dir;
  EXPECT_EQ(OpenError(dir, PipeConfig(dir, "printf 'a\\n'; yes x")).substr(0, 22),
            "command:2: column \"a\":");
}

TEST(Pipe, TheCommandGetsDefaultSignalsAndNothingThatIsOpenHere) {
  const TempDir dir;
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto pipe_before = signal(SIGPIPE, SIG_IGN);
  const int careless = open("/dev/null", O_RDONLY);
  std::string name;
  uint64_t signals = 0;
  const std::string command = "grep -E 'SigBlk|SigIgn' /proc/self/status > " + dir.path("signals") +
                              "; ls /proc/self/fd | wc -l > " + dir.path("open") +
                              "; printf 'a\\n1\\n'";
  EXPECT_EQ(OpenError(dir, PipeConfig(dir, command)), "no error");
  close(careless);
  signal(SIGPIPE, pipe_before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (std::istringstream lines(dir.Read("signals")); lines >> name >> std::hex >> signals;) {
    EXPECT_EQ(signals & 0x7fffffff, 0u) << name << " beside glibc's own";
  }
  EXPECT_EQ(name, "SigIgn:");
  EXPECT_EQ(dir.Read("open"), "4\n") << "input, output, errors, and the folder that ls reads";
}

// The process has ended, or is a zombie.
bool IsGone(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string text;
  std::getline(stat, text);
  return text.empty() || text.substr(text.rfind(')')).starts_with(") Z");
}

TEST(Pipe, TheCommandEndsWithItsReaderHoweverThatEnds) {
  const TempDir dir;
  const std::string write_pids = "echo $$ > " + dir.path("pids.new") +
                                 "; sleep 1000 & echo $! >> " + dir.path("pids.new") + "; mv " +
                                 dir.path("pids.new") + " " + dir.path("pids") + "; ";
  for (const char* forever : {"wait", "while true; do echo x; done"}) {
    std::filesystem::remove(dir.path("pids"));
    const pid_t reader = fork();
    ASSERT_GE(reader, 0);
    if (reader == 0) {
      signal(SIGPIPE, SIG_IGN);
      const auto source = OpenPipeSource(write_pids + forever);
      pause();
      _exit(source.ok() ? 0 : 1);
    }
    ASSERT_TRUE(test::Eventually(std::chrono::seconds(10), [&] { return dir.Read("pids") != ""; }));
    kill(reader, SIGKILL);
    waitpid(reader, nullptr, 0);
    std::istringstream pids(dir.Read("pids"));
    int count = 0;
    for (std::string pid; pids >> pid; ++count) {
      EXPECT_TRUE(test::Eventually(std::chrono::seconds(10), [&] { return IsGone(pid); }))
          << forever;
      if (!IsGone(pid)) kill(std::stoi(pid), SIGKILL);
    }
    EXPECT_EQ(count, 2);
  }
}

TEST(Files, WhatIsNoFileIsSaidAtOnce) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.path("p").c_str(), 0600), 0);
  DataConfig config = ConfigFor(dir, DataFormat::kLibsvm, "1 1:1\n");
  config.train = {dir.path("p")};
  EXPECT_EQ(OpenError(dir, config), "p is a pipe, not a file");
  config.format = DataFormat::kBinary;
  EXPECT_EQ(OpenError(dir, config), "p is a pipe, not a file");
}

}  // namespace
}  // namespace dt::worker
