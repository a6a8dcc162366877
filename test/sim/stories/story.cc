#include "test/sim/stories/story.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/base/log.h"
#include "scheduler/report/result_of.h"
#include "test/support/sim_seeds.h"

namespace dt::sim {
namespace {

constexpr Duration kMoment = milliseconds(100);
// For a job without misfortunes, or after them; restarts from checkpoints included.
constexpr Duration kEndsWithin = seconds(400);
constexpr Duration kStartsWithin = milliseconds(600);

// What a job may end with when something has befallen it.
bool IsMisfortune(const Status& outcome) {
  const bool killed_before_it_joined = ToText(outcome).find(" have joined") != std::string::npos;
  return outcome.code() == StatusCode::kUnavailable || outcome.code() == StatusCode::kCancelled ||
         killed_before_it_joined;
}

bool IsInTheWay(const JobResult::Event& lost) {
  const auto how = std::ranges::find(lost.details, "how", [](const auto& d) { return d.first; });
  if (how == lost.details.end()) return false;
  const auto& text = std::get<std::string>(how->second);
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"holds ", "do not reach", "stands still", "answered"},
      [&](std::string_view words) { return text.find(words) != std::string::npos; });
}

int64_t NewcomersOf(const JobResult::Event& view) {
  const auto at =
      std::ranges::find(view.details, "newcomers", [](const auto& d) { return d.first; });
  return at == view.details.end() ? 0 : std::get<int64_t>(at->second);
}

}  // namespace

Story::Story(uint64_t seed, const SimJob& job)
    : job_(job.In(folder_.path())), cluster_(std::make_unique<Cluster>(seed, job_, job.plan())) {
  cluster_->SetTopic(job.Topic(cluster_->world()));
}

std::optional<Ending> Story::Tell(const Misfortunes& misfortunes) {
  World& world = cluster_->world();
  const TimePoint all_well = world.Now() + misfortunes.lasting;
  cluster_->wires().Misbehave(misfortunes.network);
  if (misfortunes.kill_and_start > 0) cluster_->SetReturns();
  cluster_->Start(false);
  Check();
  const TimePoint deadline = all_well + kEndsWithin;
  bool healed = false;
  while (world.Now() < deadline) {
    // Where others come in the places of those that are killed, the job goes on without its user.
    const auto over = [&] {
      const bool ended = cluster_->scheduler().job().phase() == scheduler::JobPhase::kEnded;
      return cluster_->AllEnded() && (ended || misfortunes.kill_and_start == 0);
    };
    if (cluster_->RunUntil(kMoment, over) && !RestartIfEnded()) {
      told_ = true;
      CountRecoveries();
      return EndingNow();
    }
    if (testing::Test::HasFailure() || ended_badly_) return std::nullopt;
    if (cluster_->topic() != nullptr) StopAtTheEndOfTheStream();
    if (misfortunes.kill_and_start > 0) Supervise();
    if (world.Now() < all_well) {
      Befall(misfortunes);
    } else if (!std::exchange(healed, true)) {
      cluster_->wires().Heal();
    }
  }
  std::string left;
  for (Node node = 0; node < cluster_->nodes(); ++node) {
    const Process* const process = cluster_->process(node);
    if (process == nullptr || !process->alive()) continue;
    left += fmt::format("\n  {}: {}", node, process->Text());
  }
  ADD_FAILURE() << "the job does not end; it was started " << tally_.restarts + 1
                << " times, and is " << NameOf(cluster_->scheduler().job().phase())
                << "; nodes left:" << left << "\nits record: "
                << scheduler::PrintJobRecord(cluster_->scheduler().job().record());
  return std::nullopt;
}

// False if it is complete.
bool Story::RestartIfEnded() {
  const Status& outcome = cluster_->scheduler().job().outcome();
  const bool ended = cluster_->scheduler().job().phase() == scheduler::JobPhase::kEnded;
  if (ended && (outcome.ok() || HasTrainedAllMessages())) return false;
  if (ended) {
    ended_badly_ = !IsMisfortune(outcome);
    EXPECT_FALSE(ended_badly_) << ToText(outcome);
    Note("ended: " + ToText(outcome));
  }
  CountRecoveries();
  ++tally_.restarts;
  cluster_->Start(true);
  cluster_->RunUntil(kStartsWithin, [] { return false; });
  return true;
}

bool Story::HasTrainedAllMessages() const {
  const SimTopic* const topic = cluster_->topic();
  const auto& training = cluster_->scheduler().job().record().training;
  if (topic == nullptr || !training.has_value()) return false;
  const auto& offsets = training->schedule.state.offsets;
  return offsets.has_value() && std::ranges::all_of(*offsets, [&](uint64_t trained) {
           return trained == topic->options().messages;
         });
}

// Its job would wait for more.
void Story::StopAtTheEndOfTheStream() {
  SimScheduler& scheduler = cluster_->scheduler();
  const auto& training = scheduler.job().record().training;
  if (!scheduler.alive() || !HasTrainedAllMessages() || training->schedule.stop_requested) return;
  Note("all messages are trained on");
  scheduler.RequestStop();
}

void Story::CountRecoveries() {
  for (const JobResult::Event& event : cluster_->scheduler().job().record().events) {
    if (event.kind == "recovered") ++tally_.recoveries;
    if (event.kind == "server_lost") ++tally_.removals;
    if (event.kind == "view") {
      ++tally_.views;
      tally_.newcomers += static_cast<uint32_t>(NewcomersOf(event));
    }
    if (event.kind == "worker_lost" && IsInTheWay(event)) ++tally_.in_the_way;
    if (event.kind == "shards_moved") ++tally_.moves;
    if (event.kind == "returned") ++tally_.returns;
    if (event.kind == "best_lost") ++tally_.best_lost;
  }
  if (const auto& training = cluster_->scheduler().job().record().training) {
    tally_.windows = static_cast<uint32_t>(training->schedule.state.history.size());
  }
  for (const scheduler::GoneProcess& gone : cluster_->scheduler().job().record().gone) {
    const auto says = [&](const char* words) { return gone.why.find(words) != std::string::npos; };
    if (says("hangs: ") || says("does not answer")) ++tally_.suspects;
  }
}

// ------------------------------------------------------------ what must hold

void Story::Check() {
  if (told_) return;
  CheckOwnersAndClocks();
  for (const scheduler::GoneProcess& gone : cluster_->scheduler().job().record().gone) {
    const auto at = restarted_.find(gone.incarnation);
    if (at == restarted_.end()) continue;
    // The last heartbeat was sent up to a quarter of a lease before the end.
    if (cluster_->world().Now() - at->second < 2 * job_.cluster.lease / 3) ++tally_.quick;
    restarted_.erase(at);
  }
  const scheduler::Membership& members = cluster_->scheduler().job().membership();
  for (const scheduler::Member* server : members.OfRole(Role::kServer)) {
    const bool gave = members.presence(server->id).report.chains.copied_bytes > 0;
    if (gave && givers_.insert(server->incarnation()).second) ++tally_.givers;
  }
  cluster_->world().After(kMoment / 4, [this] { Check(); });
}

// A version of a chain has one head, and a shard's clock never goes back while its process lives,
// but for a new generation.
void Story::CheckOwnersAndClocks() {
  std::map<std::pair<ShardId, MapVersion>, uint32_t> heads;
  for (uint32_t s = 0; s < cluster_->servers(); ++s) {
    const SimServer* const server = cluster_->server(s);
    if (server == nullptr || !server->alive()) continue;
    for (const server::ShardSet* const set : server->shard_sets()) {
      for (const server::Shard& shard : set->shards()) {
        const Chain& chain = set->view().map.chains[shard.id().value()];
        if (shard.place().head) ++heads[{shard.id(), chain.since}];
        // What it had before, if it was here before, counts no more.
        if (shard.place().syncing) {
          clocks_.erase({server->incarnation(), set->generation().value(), shard.id()});
          continue;
        }
        Step& last = clocks_[{server->incarnation(), set->generation().value(), shard.id()}];
        EXPECT_GE(shard.now(), last) << "shard " << shard.id().value();
        last = shard.now();
      }
    }
  }
  for (const auto& [shard, count] : heads) {
    EXPECT_EQ(count, 1u) << "shard " << shard.first.value();
  }
}

Ending Story::EndingNow() {
  Ending ending;
  const scheduler::Membership& members = cluster_->scheduler().job().membership();
  const JobResult result = scheduler::ResultOf(cluster_->scheduler().job(), TimePoint());
  ending.restored = std::ranges::count(result.events, "restored", &JobResult::Event::kind) > 0;
  ending.checksums["dense parameters"] = result.dense_checksum;
  for (const auto& [name, table] : result.tables) {
    ending.checksums[name] = fmt::format("{} rows, {}", table.rows, table.checksum);
  }
  for (const JobResult::Evaluation& at : result.history) {
    ending.history += fmt::format("epoch {} step {}", at.epoch, at.step);
    for (const LossMean& loss : at.train) ending.history += fmt::format(" {}", loss.mean);
    for (const Metrics& of : at.valid) ending.history += fmt::format(" {}", of.logloss.value_or(0));
    ending.history += "\n";
  }
  for (uint32_t s = 0; s < cluster_->servers(); ++s) {
    const SimServer* const server = cluster_->server(s);
    // The job has gone on without some.
    if (server == nullptr || members.Find(Incarnation(server->incarnation())) == nullptr) continue;
    for (const server::ShardSet* const set : server->shard_sets()) {
      for (const auto& [key, count] : CountsOf(*set)) {
        const auto [at, added] = ending.counts.try_emplace(key, count);
        EXPECT_EQ(at->second, count) << "copies of key " << key << " differ";
      }
    }
  }
  return ending;
}

Story::Tally& Story::Tally::operator+=(const Tally& other) {
  pauses += other.pauses, cuts += other.cuts, kills += other.kills, stops += other.stops;
  changes += other.changes, moves += other.moves, full_disks += other.full_disks,
      restarts += other.restarts, recoveries += other.recoveries;
  views += other.views, newcomers += other.newcomers, returns += other.returns;
  successions += other.successions, removals += other.removals, givers += other.givers;
  in_the_way += other.in_the_way, outages += other.outages, windows += other.windows;
  quick += other.quick, suspects += other.suspects, best_lost += other.best_lost;
  return *this;
}

namespace {

// Every sample of the training data exactly once in every epoch.
void ExpectEverySampleOnce(Mode mode, const Ending& ending) {
  const long epochs = ending.restored ? 1 : EpochsOf(mode);
  for (Key key = kFirstSampleKey; key < kFirstSampleKey + SamplesOf(mode); ++key) {
    const auto count = ending.counts.find(key);
    const long times = count == ending.counts.end() ? 0 : count->second;
    EXPECT_EQ(times, epochs) << "sample " << key - kFirstSampleKey;
  }
}

}  // namespace

// ------------------------------------------------------------ what was promised

const SimJob& JobOf(Mode mode) {
  static std::map<Mode, std::unique_ptr<SimJob>> jobs;
  // Of a seed that is repeated alone, all that the processes say is of interest.
  if (jobs.empty() && !RepeatsOneSeed()) InitLog({.level = LogLevel::kOff});
  std::unique_ptr<SimJob>& job = jobs[mode];
  if (job == nullptr) job = std::make_unique<SimJob>(mode);
  return *job;
}

const Ending& Undisturbed(Mode mode) {
  static std::map<Mode, Ending> endings;
  if (!endings.contains(mode)) {
    Story story(0, JobOf(mode));
    std::optional<Ending> ending = story.Tell({});
    EXPECT_TRUE(ending.has_value());
    endings[mode] = ending.value_or(Ending());
  }
  return endings[mode];
}

void ExpectAsPromised(Mode mode, const Misfortunes& misfortunes, Story& story) {
  const std::optional<Ending> ending = story.Tell(misfortunes);
  if (!ending.has_value()) return;
  ExpectEverySampleOnce(mode, *ending);
  // Workers share the samples out as they are fast; or a step has as many slices as there are
  // workers, and each updates a row that several of its samples have once.
  const bool unbounded = mode == Mode::kUnbounded || mode == Mode::kUnboundedManyWorkers;
  if (unbounded || (!IsSynchronous(mode) && story.tally().views > 0)) return;
  if (HasStream(mode)) return;  // The samples of a step depend on when messages come.
  // A server may be lost together with the best model.
  const bool best_lost = RestoresTheBest(mode) && !ending->restored;
  EXPECT_TRUE(!best_lost || story.tally().best_lost > 0);
  const Ending& undisturbed = best_lost ? Undisturbed(WithoutRestoring(mode)) : Undisturbed(mode);
  EXPECT_EQ(ending->counts, undisturbed.counts);
  if (!IsSynchronous(mode)) return;
  EXPECT_EQ(ending->checksums, undisturbed.checksums);
  EXPECT_EQ(ending->history, Undisturbed(mode).history);
}

}  // namespace dt::sim
