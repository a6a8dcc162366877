// The base of planted bugs: each sits around the real components of a story, strikes there, and
// must be noticed.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/wire/data.h"
#include "server/table/table_specs.h"
#include "test/sim/stories/story.h"

namespace dt::sim {

inline constexpr int kStoriesMax = 40, kStruckEnough = 4;

// Where a bug is: it sees every message before the process that it is for.
class Bug {
 public:
  explicit Bug(Story& story);
  virtual ~Bug() { story_.cluster().wires().SetTap({}); }
  int struck() const { return struck_; }

 protected:
  // A message to a server, from a worker or from another server. False: it does not get it.
  virtual bool OnPush(const std::string&, const std::string&, PushRequest&, Frames&) {
    return true;
  }
  virtual bool OnRecords(const std::string&, const RecordsRequest&, Frames&) { return true; }
  // A message of the scheduler, or to it.
  virtual bool OnControl(const std::string&, const std::string&, Frames&) { return true; }

  void Strike() { ++struck_; }
  Story& story() { return story_; }
  std::span<const server::TableSpec> tables() const { return tables_; }

  // Whether its loss changes the number of updates of some row.
  bool IsCounted(const PushRequest& push) const {
    return std::ranges::any_of(push.groups, [this](const KeyGroup& group) {
      return tables_[group.table].id == TableIdOf("counts");
    });
  }
  void AcknowledgeFor(const std::string& server, const std::string& worker, uint64_t request) {
    story_.cluster().wires().Deliver(worker, server,
                                     Encode(DataReply{.request = request, .status = {}}));
  }
  // The index of the server that listens at this address, among those that the job begins with.
  uint32_t ServerAt(const std::string& endpoint) const {
    const JobConfig& job = story_.cluster().job();
    for (uint32_t s = 0; s < job.cluster.servers; ++s) {
      for (uint32_t e = 0; e < job.cluster.server.executors; ++e) {
        if (SimServer::EndpointOf(s + 1, e) == endpoint) return s;
      }
    }
    DT_UNREACHABLE();
  }
  // At once after the present message; another one is started later.
  void KillServer(uint32_t index) {
    Cluster& cluster = story_.cluster();
    cluster.world().After(Duration::zero(), [&cluster, index] { cluster.server(index)->Kill(); });
    cluster.world().After(seconds(1), [&cluster, index] { cluster.StartServer(index); });
  }

 private:
  Story& story_;
  const std::vector<server::TableSpec> tables_;
  const std::vector<WireTable> wire_tables_;
  int struck_ = 0;
};

// Whether all is as promised.
bool IsAsPromised(Mode mode, const Misfortunes& misfortunes, Story& story);

template <class PlantedBug>
void ExpectCaught(Mode mode, const Misfortunes& misfortunes) {
  int struck = 0;
  for (int seed = 1; seed <= kStoriesMax && struck < kStruckEnough; ++seed) {
    Story story(static_cast<uint64_t>(seed), JobOf(mode));
    const PlantedBug bug(story);
    const bool as_promised = IsAsPromised(mode, misfortunes, story);
    if (bug.struck() == 0) continue;
    ++struck;
    EXPECT_FALSE(as_promised) << "seed " << seed << ": nobody has noticed\n" << story.text();
  }
  EXPECT_EQ(struck, kStruckEnough);
}

}  // namespace dt::sim
