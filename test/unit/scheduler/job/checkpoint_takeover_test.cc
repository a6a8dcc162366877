// Goal: a scheduler that takes the job over between any two messages ends a checkpoint as the one
// before would have, whatever the order in which they arrive. Method: all orders of what three
// servers do, one of which may die; at every gap the record is written and read back, as the next
// scheduler reads it. The orders themselves are checked in checkpoint_commit_test.cc.
#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/state/checkpoint_commit.h"
#include "scheduler/state/job_record.h"

namespace dt::scheduler {
namespace {

constexpr uint64_t kSaveOrder = 12;
constexpr Step kSavedStep = 7;
constexpr uint32_t kServers = 3;

enum What : uint8_t { kAnswers, kWrites, kDies };
struct Event {
  What what = kAnswers;
  uint32_t server = 1;
  friend auto operator<=>(const Event&, const Event&) = default;
};

std::string TextOfTakeover(const std::vector<Event>& events, size_t taken_over) {
  constexpr const char* kWords[] = {"answers", "writes", "dies"};
  std::string text;
  for (size_t e = 0; e <= events.size(); ++e) {
    if (e == taken_over) text += "takeover; ";
    if (e == events.size()) break;
    text += fmt::format("server {} {}; ", events[e].server, kWords[events[e].what]);
  }
  return text;
}

// As the next scheduler of the job finds it.
CheckpointRecord WrittenAndRead(const CheckpointRecord& record) {
  JobRecord job;
  job.training.emplace().checkpoint = record;
  Result<JobRecord> back = DecodeJobRecord(EncodeJobRecord(job));
  EXPECT_TRUE(back.ok()) << back.status();
  return back.ok() && back->training ? back->training->checkpoint : CheckpointRecord();
}

struct End {
  bool settled = false, abandoned = false, best = false;
  size_t after = 0;                // Events.
  std::vector<std::string> files;  // Of one that is complete.
  friend bool operator==(const End&, const End&) = default;
};

// What comes of the events. After so many the record is written and read; ~0: never.
End Outcome(const std::vector<Event>& events, size_t taken_over) {
  CheckpointRecord record;
  CheckpointCommit(record).Begin(kSaveOrder, kSavedStep, true);
  std::map<ProcessId, SaveDone> answers;
  End end;
  for (size_t e = 0; e < events.size(); ++e) {
    if (e == taken_over) record = WrittenAndRead(record);
    CheckpointCommit commit(record);
    const ProcessId id(events[e].server);
    if (events[e].what == kAnswers) {
      answers[id] = {{{fmt::format("answer-{}", id.value()), 1, 2}}, true};
      if (answers.size() == kServers) commit.Cut(Manifest{.job = "j"}, answers);
    } else if (events[e].what == kWrites) {
      commit.OnRowsWritten(id, {kSaveOrder, {{fmt::format("rows-{}", id.value()), 3, 4}}});
    } else {
      commit.OnLost(id, answers.contains(id));
    }
    const std::optional<CheckpointCommit::Settled> settled = commit.TakeSettled();
    if (!settled.has_value()) continue;
    EXPECT_FALSE(end.settled) << "it ends once";
    end = {.settled = true,
           .abandoned = settled->abandoned,
           .best = settled->best,
           .after = e + 1,
           .files = {}};
    for (const CheckpointFile& file : settled->manifest.files) end.files.push_back(file.name);
  }
  return end;
}

// A server writes behind its answer, and only while it lives: one that dies after its answer has
// nobody who could write its rows; one that dies before is succeeded by another.
bool CanBeTakenOver(const std::vector<Event>& events) {
  for (uint32_t server = 1; server <= kServers; ++server) {
    const auto at = [&](What what) { return std::ranges::find(events, Event{what, server}); };
    const auto answers = at(kAnswers), writes = at(kWrites), dies = at(kDies);
    if (writes != events.end() && writes < answers) return false;
    if (dies != events.end() && dies > answers && writes != events.end() && writes > dies) {
      return false;
    }
  }
  return true;
}

size_t TryAllTakeoversOf(std::vector<Event> events) {
  std::ranges::sort(events);
  size_t tried = 0;
  do {
    if (!CanBeTakenOver(events)) continue;
    const End whole = Outcome(events, ~size_t{0});
    EXPECT_TRUE(whole.settled) << TextOfTakeover(events, ~size_t{0});
    for (size_t gap = 0; gap < events.size(); ++gap) {
      EXPECT_EQ(Outcome(events, gap), whole) << TextOfTakeover(events, gap);
    }
    ++tried;
  } while (std::ranges::next_permutation(events).found && !::testing::Test::HasFailure());
  return tried;
}

std::vector<Event> AllAnswerAndWrite() {
  std::vector<Event> events;
  for (uint32_t server = 1; server <= kServers; ++server) {
    events.push_back({kAnswers, server});
    events.push_back({kWrites, server});
  }
  return events;
}

TEST(CheckpointTakeover, AtAnyTimeChangesNothingOfACompleteOne) {
  EXPECT_EQ(TryAllTakeoversOf(AllAnswerAndWrite()), 90u);  // 6! / 2³
  const End end = Outcome(AllAnswerAndWrite(), 3);
  EXPECT_FALSE(end.abandoned);
  EXPECT_TRUE(end.best);
  EXPECT_THAT(end.files, ::testing::ElementsAre("answer-1", "answer-2", "answer-3", "rows-1",
                                                "rows-2", "rows-3"));
}

TEST(CheckpointTakeover, AtAnyTimeChangesNothingOfOneWhoseServerDies) {
  std::vector<Event> writes = AllAnswerAndWrite();
  writes.push_back({kDies, 2});
  // Of 7! / 2³ = 630 orders those where it does not write behind its death.
  EXPECT_EQ(TryAllTakeoversOf(writes), 420u);
}

TEST(CheckpointTakeover, KnowsOfADeathBetweenAnswerAndRows) {
  const std::vector<Event> events = {{kAnswers, 2}, {kDies, 2},   {kAnswers, 1},
                                     {kAnswers, 3}, {kWrites, 1}, {kWrites, 3}};
  for (size_t gap = 0; gap < events.size(); ++gap) {
    const End end = Outcome(events, gap);
    EXPECT_TRUE(end.abandoned) << TextOfTakeover(events, gap);
    EXPECT_EQ(end.after, events.size()) << TextOfTakeover(events, gap);
  }
}

}  // namespace
}  // namespace dt::scheduler
