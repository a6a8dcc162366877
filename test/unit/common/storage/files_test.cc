// Goal: special files are never waited for, replaced or written through by mistake. Method: pipes,
// sockets, links and devices in a folder of the test.
#include "common/storage/files.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  std::string Pipe(const std::string& name) const {
    EXPECT_EQ(mkfifo((temp_ / name).c_str(), 0600), 0);
    return temp_ / name;
  }
  std::string Socket(const std::string& name) const {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    (temp_ / name).copy(address.sun_path, sizeof address.sun_path - 1);
    const OpenFile socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return temp_ / name;
  }
  std::string File(const std::string& name, const std::string& content) const {
    std::ofstream(temp_ / name) << content;
    return temp_ / name;
  }
  std::string ContentOf(const std::string& path) const { return ReadWholeFile(path).value_or("?"); }
  size_t Entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(temp_.path()), {}));
  }

  const test::ScratchFolder temp_;
};

TEST_F(FilesTest, ReadingSaysWhatIsNoFile) {
  const std::pair<std::string, std::string> cases[] = {{Pipe("p"), "p is a pipe, not a file"},
                                                       {Socket("s"), "s is a socket, not a file"},
                                                       {temp_.path(), " is a folder, not a file"},
                                                       {"/dev/null", "is a device, not a file"}};
  for (const auto& [path, sentence] : cases) {
    EXPECT_THAT(ToText(ReadWholeFile(path).status()), HasSubstr(sentence));
  }
  EXPECT_EQ(ReadWholeFile(temp_ / "absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadWholeFile(File("f", "12345"), 4).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(*ReadWholeFile(temp_ / "f", 5), "12345");
}

TEST_F(FilesTest, AFileAppearsWholeOrNotAtAll) {
  const std::string path = temp_ / "made/on/the/way/f";
  {
    const auto unfinished = NewFile::Create(path);
    ASSERT_TRUE(unfinished.ok()) << unfinished.status();
    ASSERT_TRUE((*unfinished)->Write("half").ok());
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(temp_ / "made/on/the/way"));
  const auto file = *NewFile::Create(path);
  ASSERT_TRUE(file->Write("who").ok());
  ASSERT_TRUE(file->WriteAt(3, "le").ok());
  ASSERT_TRUE(file->Finish().ok());
  EXPECT_EQ(ContentOf(path), "whole");
}

TEST_F(FilesTest, APipeIsWrittenInPlaceAndOneWithoutAReaderIsSaid) {
  const std::string path = Pipe("p");
  EXPECT_THAT(ToText(WriteWholeFile(path, "x")), HasSubstr("nobody reads the pipe"));
  const OpenFile reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(WriteWholeFile(path, "content").ok());
  char got[16] = {};
  EXPECT_EQ(read(reader.descriptor(), got, sizeof got), 7);
  EXPECT_STREQ(got, "content");
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_THAT(ToText((*NewFile::Create(path))->WriteAt(0, "x")), HasSubstr("is no file"));
}

TEST_F(FilesTest, SocketsAndDevicesAreNotReplaced) {
  EXPECT_FALSE(WriteWholeFile(Socket("s"), "x").ok());
  EXPECT_TRUE(fs::is_socket(temp_ / "s"));
  const std::string device = temp_ / "null";
  if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 3)) != 0) GTEST_SKIP() << "needs root";
  EXPECT_TRUE(CheckWritable(device).ok());
  if (const Status written = WriteWholeFile(device, "x"); !written.ok()) {
    // The folder is on a file system without devices.
    EXPECT_THAT(ToText(written), HasSubstr("Permission denied"));
  }
  EXPECT_TRUE(fs::is_character_file(device));
  EXPECT_EQ(Entries(), 2u);
}

TEST_F(FilesTest, OwnOutputIsWrittenInPlace) {
  const std::string path = File("out", "");
  const OpenFile output(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const int before = dup(STDOUT_FILENO);
  ASSERT_EQ(write(output.descriptor(), "before ", 7), 7);
  dup2(output.descriptor(), STDOUT_FILENO);
  const Status written = WriteWholeFile(path, "result ");
  ASSERT_EQ(write(STDOUT_FILENO, "after", 5), 5);
  dup2(before, STDOUT_FILENO);
  close(before);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_EQ(ContentOf(path), "before result after");
}

TEST_F(FilesTest, LinksAreFollowedAndStay) {
  fs::create_directory(temp_ / "there");
  const std::string target = File("there/f", "old");
  fs::create_symlink("there/f", temp_ / "link");
  fs::create_symlink(temp_ / "link", temp_ / "second");
  fs::create_symlink("there/new", temp_ / "to_nothing");
  fs::create_symlink("circle", temp_ / "circle");
  ASSERT_TRUE(WriteWholeFile(temp_ / "second", "new").ok());
  ASSERT_TRUE(WriteWholeFile(temp_ / "to_nothing", "made").ok());
  EXPECT_EQ(ContentOf(target), "new");
  EXPECT_EQ(ContentOf(temp_ / "there/new"), "made");
  EXPECT_TRUE(fs::is_symlink(temp_ / "link") && fs::is_symlink(temp_ / "to_nothing"));
  EXPECT_FALSE(WriteWholeFile(temp_ / "circle", "x").ok());
  EXPECT_TRUE(fs::is_symlink(temp_ / "circle"));
}

TEST_F(FilesTest, ADraftIsNeverWrittenThroughALink) {
  const std::string victim = File("victim", "intact");
  fs::create_symlink(victim, temp_ / "f.part");
  ASSERT_TRUE(WriteWholeFile(temp_ / "f", "new").ok());
  EXPECT_EQ(ContentOf(victim), "intact");
  File("f.part", "of a process that was killed");
  ASSERT_TRUE(WriteWholeFile(temp_ / "f", "newer").ok());
  EXPECT_EQ(ContentOf(temp_ / "f"), "newer");
  EXPECT_FALSE(fs::exists(temp_ / "f.part"));
}

TEST_F(FilesTest, CheckingMakesNothingButTheFolder) {
  File("f.part", "somebody's");
  EXPECT_TRUE(CheckWritable(temp_ / "f").ok());
  EXPECT_EQ(ContentOf(temp_ / "f.part"), "somebody's");
  EXPECT_TRUE(CheckWritable(temp_ / "folder/f").ok());
  EXPECT_TRUE(fs::is_empty(temp_ / "folder"));
  EXPECT_TRUE(CheckWritable(Pipe("p")).ok());
  EXPECT_THAT(ToText(CheckWritable(temp_ / "folder")), HasSubstr("is a folder, not a file"));
  EXPECT_THAT(ToText(CheckWritable(temp_ / "f.part/x")), HasSubstr("cannot be written"));
  EXPECT_EQ(CheckWritable("/proc/x").code(), StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, WhatIsPrivateIsClosedToOthers) {
  constexpr auto kAll = fs::perms::group_all | fs::perms::others_all;
  const auto open_to_others = [&](const std::string& name) {
    return (fs::status(temp_ / name).permissions() & kAll) != fs::perms::none;
  };
  ASSERT_TRUE(MakePrivateFolder(temp_ / "a/b/").ok());
  EXPECT_TRUE(open_to_others("a"));
  EXPECT_FALSE(open_to_others("a/b"));
  EXPECT_TRUE(MakePrivateFolder(temp_ / "a").ok());
  EXPECT_TRUE(open_to_others("a")) << "somebody decided so";
  ASSERT_TRUE(WriteWholeFile(temp_ / "f", "x", Readers::kOwner).ok());
  EXPECT_FALSE(open_to_others("f"));
  EXPECT_FALSE(MakePrivateFolder(temp_ / "f").ok());
}

}  // namespace
}  // namespace dt
