#include "common/storage/rocksdb_rows.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "test/support/scratch_folder.h"

namespace dt {
namespace {

using test::ScratchFolder;
using Content = std::map<std::string, std::string>;

std::unique_ptr<RowsDb> MakeIn(const std::string& folder) {
  auto db = RowsDb::Create(folder, {.cache_bytes = 1 << 20});
  EXPECT_TRUE(db.ok()) << db.status();
  return *std::move(db);
}

void Add(RowsDb& db, const Content& rows) {
  auto file = db.NewFile(1000);
  for (const auto& [key, value] : rows) ASSERT_TRUE(file->Add(key, value).ok());
  const Status added = db.Ingest(std::move(file));
  ASSERT_TRUE(added.ok()) << added;
}

Content All(const RowsDb& db) {
  Content rows;
  const auto at = db.Read();
  EXPECT_TRUE(at->Seek({}).ok());
  while (at->valid()) {
    rows[std::string(at->key())] = at->value();
    EXPECT_TRUE(at->Next().ok());
  }
  return rows;
}

TEST(RowsDb, LaterFilesWin) {
  const ScratchFolder temp;
  auto db = MakeIn(temp / "rows");
  Add(*db, {{"a", "1"}, {"b", "1"}});
  Add(*db, {{"b", "2"}, {"c", "2"}});
  EXPECT_EQ(All(*db), (Content{{"a", "1"}, {"b", "2"}, {"c", "2"}}));
}

// Parts that have no records yet are read, too, also after the database was opened again.
TEST(RowsDb, PartsComeWithTheirFirstRecords) {
  const ScratchFolder temp;
  auto made = RowsDb::Create(temp / "rows", {.cache_bytes = 1 << 20, .cuts = {"2", "3", "4"}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(All(**made), Content{});
  Add(**made, {{"31", "a"}});
  const std::vector<std::string_view> keys = {"1", "21", "31", "41"};
  std::string found;
  const auto visit = [&](size_t i, auto value) { found += value.has_value() ? keys[i] : "-"; };
  ASSERT_TRUE((*made)->MultiGet(keys, visit).ok());
  EXPECT_EQ(found, "--31-");
  const auto at = (*made)->Read();
  ASSERT_TRUE(at->Seek("21").ok());
  ASSERT_TRUE(at->valid());
  EXPECT_EQ(at->key(), "31");
  ASSERT_TRUE((*made)->Checkpoint(temp / "copy").ok());
  auto copy = RowsDb::Open(temp / "copy", {.cache_bytes = 1 << 20});
  ASSERT_TRUE(copy.ok()) << copy.status();
  Add(**copy, {{"1", "b"}, {"21", "c"}, {"41", "d"}});
  EXPECT_EQ(All(**copy), (Content{{"1", "b"}, {"21", "c"}, {"31", "a"}, {"41", "d"}}));
}

TEST(RowsDb, ARemovedRangeStaysAwayUntilItsRecordsComeAgain) {
  const ScratchFolder temp;
  auto made = RowsDb::Create(temp / "rows", {.cache_bytes = 1 << 20, .cuts = {"3"}});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE((*made)->RemoveRange("4", "5").ok()) << "the part has no records";
  Add(**made, {{"11", "a"}, {"12", "b"}, {"2", "c"}, {"31", "d"}, {"4", "e"}});
  ASSERT_TRUE((*made)->RemoveRange("11", "2").ok());
  ASSERT_TRUE((*made)->RemoveRange("31", "4").ok());
  EXPECT_EQ(All(**made), (Content{{"2", "c"}, {"4", "e"}}));
  Add(**made, {{"12", "f"}});
  const Content want = {{"12", "f"}, {"2", "c"}, {"4", "e"}};
  EXPECT_EQ(All(**made), want);
  for (int i = 0; i < 200; ++i) Add(**made, {{"2", "c"}});  // The files are merged meanwhile.
  EXPECT_EQ(All(**made), want);
  ASSERT_TRUE((*made)->Checkpoint(temp / "copy").ok());
  const auto copy = RowsDb::OpenToRead(temp / "copy");
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(All(**copy), want);
}

TEST(RowsDb, MergingLeavesUselessRecordsOut) {
  const ScratchFolder temp;
  auto db = RowsDb::Create(
      temp / "rows", {.cache_bytes = 1 << 20, .useless = [](auto, auto v) { return v == "old"; }});
  ASSERT_TRUE(db.ok()) << db.status();
  const Content all = {{"a", "old"}, {"b", "new"}, {"c", "old"}};
  const auto dropped = [&] { return All(**db) == Content{{"b", "new"}}; };
  for (int files = 0; files < 200 && !dropped(); ++files)
    Add(**db, files == 0 ? all : Content{{"b", "new"}});
  EXPECT_TRUE(dropped());
}

TEST(RowsDb, MultiGetVisitsEveryKeyInOrder) {
  const ScratchFolder temp;
  auto db = MakeIn(temp / "rows");
  Content rows;
  for (int i = 1000; i < 2000; i += 2) rows[std::to_string(i)] = std::to_string(3 * i);
  Add(*db, rows);
  std::vector<std::string> keys;
  for (int i = 1000; i < 2000; ++i) keys.push_back(std::to_string(i));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  size_t next = 0;
  const Status read = db->MultiGet(views, [&](size_t i, std::optional<std::string_view> value) {
    ASSERT_EQ(i, next++);
    ASSERT_EQ(value.has_value(), i % 2 == 0);
    if (!value.has_value()) return;
    ASSERT_EQ(*value, rows.at(keys[i]));
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(next, keys.size());
}

// The records are divided into parts at these keys; readers see a single sequence.
TEST(RowsDb, PartsAreOneForReadersAndOutliveACheckpoint) {
  const ScratchFolder temp;
  auto made = RowsDb::Create(temp / "rows", {.cache_bytes = 1 << 20, .cuts = {"11", "12", "14"}});
  ASSERT_TRUE(made.ok()) << made.status();
  Content rows;
  for (int i = 1000; i < 1500; i += 5) rows[std::to_string(i)] = "old";
  Add(**made, rows);
  const Content changed = {{"1100", "new"}, {"1395", "new"}, {"1400", "new"}};
  Add(**made, changed);
  for (const auto& [key, value] : changed) rows[key] = value;
  ASSERT_TRUE((*made)->Checkpoint(temp / "copy").ok());
  for (const bool copy : {false, true}) {
    if (copy) made = RowsDb::Open(temp / "copy", {.cache_bytes = 1 << 20});
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(All(**made), rows);
    const std::vector<std::string_view> keys = {"1000", "1001", "1100", "1195", "1395", "1495"};
    std::vector<std::string> values;
    const auto take = [&](size_t, std::optional<std::string_view> value) {
      values.emplace_back(value.value_or("none"));
    };
    ASSERT_TRUE((*made)->MultiGet(keys, take).ok());
    EXPECT_EQ(values, (std::vector<std::string>{"old", "none", "new", "old", "new", "old"}));
    const auto at = (*made)->Read();
    // The last record of that part is before the key, so the reader goes on to the next part.
    ASSERT_TRUE(at->Seek("1196").ok());
    ASSERT_TRUE(at->valid());
    EXPECT_EQ(at->key(), "1200");
    ASSERT_TRUE(at->Seek("1500").ok());
    EXPECT_FALSE(at->valid());
  }
}

// A checkpoint never waits for merges, however many files overlap by then.
TEST(RowsDb, MergesThatAreHeldWaitForTheirRelease) {
  const ScratchFolder temp;
  auto db = MakeIn(temp / "rows");
  db->HoldMerges();
  for (int file = 0; file < 100; ++file) Add(*db, {{"a", std::to_string(file)}, {"b", "1"}});
  EXPECT_TRUE(db->Crowded());
  ASSERT_TRUE(db->Checkpoint(temp / "copy").ok());
  EXPECT_TRUE(db->Crowded());
  db->ReleaseMerges();
  for (int file = 0; file < 200 && db->Crowded(); ++file) {
    Add(*db, {{"a", "99"}});
    db->HoldMerges();  // Waits for the running merge.
    db->ReleaseMerges();
  }
  EXPECT_FALSE(db->Crowded());
  EXPECT_EQ(All(*db), (Content{{"a", "99"}, {"b", "1"}}));
}

TEST(RowsDb, CheckpointIsACopyOfThenThatOthersReadAndGoOnWith) {
  const ScratchFolder temp;
  auto db = MakeIn(temp / "rows");
  Add(*db, {{"a", "1"}});
  ASSERT_TRUE(db->Checkpoint(temp / "copy").ok());
  Add(*db, {{"a", "2"}});
  auto copy = RowsDb::OpenToRead(temp / "copy");
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(All(**copy), (Content{{"a", "1"}}));
  EXPECT_FALSE(db->Checkpoint(temp / "copy").ok());
  copy->reset();
  auto own = RowsDb::Open(temp / "copy", {.cache_bytes = 1 << 20});
  ASSERT_TRUE(own.ok()) << own.status();
  Add(**own, {{"b", "3"}});
  EXPECT_EQ(All(**own), (Content{{"a", "1"}, {"b", "3"}}));
  EXPECT_EQ(All(*db), (Content{{"a", "2"}}));
}

TEST(RowsDb, OpenFilesAreBounded) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const ScratchFolder temp;
  RowsDb::Options options{.cache_bytes = 1 << 20, .open_files = 20};
  for (char first = 'b'; first <= 'j'; ++first) options.cuts.emplace_back(1, first);
  Content rows;
  for (char key = 'a'; key <= 'j'; ++key) rows[std::string(1, key)] = "1";
  const auto before = open_files();
  auto db = RowsDb::Create(temp / "rows", options);
  ASSERT_TRUE(db.ok()) << db.status();
  (*db)->HoldMerges();
  for (int files = 0; files < 20; ++files) Add(**db, rows);
  EXPECT_EQ(All(**db), rows);
  EXPECT_LE(open_files() - before, 40);
}

TEST(RowsDb, CreateForgetsWhatWasThere) {
  const ScratchFolder temp;
  Add(*MakeIn(temp / "rows"), {{"a", "1"}});
  EXPECT_TRUE(All(*MakeIn(temp / "rows")).empty());
}

TEST(RowsDb, FileThatIsNotAddedIsRemoved) {
  const ScratchFolder temp;
  auto db = MakeIn(temp / "rows");
  ASSERT_TRUE(db->NewFile(10)->Add("a", "1").ok());
  for (const auto& entry : std::filesystem::directory_iterator(temp / "rows")) {
    EXPECT_NE(entry.path().extension(), ".sst");
  }
}

TEST(RowsDb, DamageIsDataLossAndNamesTheFile) {
  const ScratchFolder temp;
  auto db = MakeIn(temp / "rows");
  Content rows;
  for (int i = 1000; i < 9000; ++i) rows[std::to_string(i)] = std::string(50, 'x');
  Add(*db, rows);
  ASSERT_TRUE(db->Checkpoint(temp / "copy").ok());
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(temp / "copy")) {
    if (entry.path().extension() == ".sst") path = entry.path();
  }
  // A copy, so that the file that the first database shares is not damaged.
  std::filesystem::copy_file(path, path + ".own");
  std::filesystem::rename(path + ".own", path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100'000);
  file.write("\x5a\xa5\x5a", 3);
  file.close();
  auto copy = RowsDb::OpenToRead(temp / "copy");
  ASSERT_TRUE(copy.ok()) << copy.status();
  const auto at = (*copy)->Read();
  Status status = at->Seek({});
  while (status.ok() && at->valid()) status = at->Next();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(ToText(status).find(path), std::string::npos) << status;
  // Reads single rows, as a server does.
  status = OkStatus();
  for (int i = 1000; i < 9000 && status.ok(); ++i) {
    const std::string key = std::to_string(i);
    const std::string_view view = key;
    status = (*copy)->MultiGet({&view, 1}, [](size_t, std::optional<std::string_view>) {});
  }
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(All(*db).size(), rows.size());
}

TEST(RowsDb, FolderThatCannotBeMadeIsNamed) {
  const ScratchFolder temp;
  std::ofstream(temp / "file") << "x";
  const auto db = RowsDb::Create(temp / "file/below", {.cache_bytes = 1 << 20});
  ASSERT_FALSE(db.ok());
  EXPECT_NE(ToText(db.status()).find(temp / "file/below"), std::string::npos) << db.status();
}

}  // namespace
}  // namespace dt
