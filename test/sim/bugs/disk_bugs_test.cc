// Goal: the simulation notices files that are not what they should be. Method: as in
// planted_bugs_test.cc.
#include <filesystem>

#include "common/base/check.h"
#include "common/storage/files.h"
#include "scheduler/checkpoint/checkpoint_store.h"
#include "test/sim/bugs/bug.h"

namespace dt::sim {
namespace {

// Gives the newest checkpoint the files that begin with `prefix` of the one before. False: there is
// none.
bool TearNewestCheckpoint(const std::string& dir, const std::string& prefix) {
  namespace fs = std::filesystem;
  const std::vector<scheduler::CheckpointInfo> all = scheduler::ListCheckpoints(dir);
  if (all.size() < 2) return false;
  const std::string &from = all[all.size() - 2].folder, &to = all.back().folder;
  const Result<scheduler::Manifest> old = scheduler::ReadManifest(from);
  Result<scheduler::Manifest> torn = scheduler::ReadManifest(to);
  DT_CHECK(old.ok() && torn.ok());
  const auto is_torn = [&](const CheckpointFile& file) { return file.name.starts_with(prefix); };
  DT_CHECK(std::erase_if(torn->files, is_torn) > 0);
  for (const CheckpointFile& file : old->files) {
    if (!is_torn(file)) continue;
    fs::remove(fs::path(to) / file.name);
    fs::copy_file(fs::path(from) / file.name, fs::path(to) / file.name);
    torn->files.push_back(file);
  }
  const Status written = WriteWholeFile(to + "/manifest.json", scheduler::ManifestToJson(*torn));
  DT_CHECK_MSG(written.ok(), "{}", ToText(written));
  return true;
}

// Steps must take some time, or the last one is done when the first cut is torn.
constexpr Misfortunes kSlow = {.network = {.delay_max = milliseconds(20)}, .lasting = seconds(20)};

void ExpectTornCutIsCaught(Mode mode, const std::string& prefix) {
  int struck = 0;
  for (uint64_t seed = 1; seed <= kStoriesMax && struck < kStruckEnough; ++seed) {
    Story story(seed, JobOf(mode));
    Cluster& cluster = story.cluster();
    const int before = struck;
    const std::function<void()> look = [&] {
      if (!TearNewestCheckpoint(cluster.job().checkpoint.dir, prefix)) {
        return cluster.world().After(milliseconds(5), look);
      }
      ++struck;
      cluster.worker(0)->Kill();
      cluster.worker(1)->Kill();
    };
    look();
    const bool as_promised = IsAsPromised(mode, kSlow, story);
    EXPECT_FALSE(as_promised && struck > before) << "seed " << seed << ": nobody has noticed";
  }
  EXPECT_EQ(struck, kStruckEnough);
}

// A checkpoint of which one server's part was cut earlier than the others.
TEST(DiskBugs, ATornCutIsCaught) { ExpectTornCutIsCaught(Mode::kBounded, "server-1/"); }

// A checkpoint whose dense parameters were cut earlier than its rows.
TEST(DiskBugs, ACutBetweenRowsAndDenseParametersIsCaught) {
  ExpectTornCutIsCaught(Mode::kSynchronous, "dense");
}

// The end of a log that was acknowledged and is not there.
TEST(DiskBugs, ALogThatLostItsEndIsCaught) {
  int struck = 0;
  for (uint64_t seed = 1; seed <= kStoriesMax && struck < kStruckEnough; ++seed) {
    Story story(seed, JobOf(Mode::kLog));
    World& world = story.cluster().world();
    world.After(milliseconds(600 + 25 * static_cast<int>(seed)), [&] {
      SimServer* const server = story.cluster().server(0);
      if (server == nullptr || !server->alive()) return;
      server->KillInNextWrite(2000);
      world.After(seconds(1), [&, server] {
        if (server->alive() || story.cluster().server(0) != server) return;
        story.cluster().StartServer(0);
        ++struck;
      });
    });
    const int before = struck;
    const bool as_promised = IsAsPromised(Mode::kLog, {}, story);
    EXPECT_FALSE(as_promised && struck > before) << "seed " << seed << ": nobody has noticed";
  }
  EXPECT_EQ(struck, kStruckEnough);
}

}  // namespace
}  // namespace dt::sim
