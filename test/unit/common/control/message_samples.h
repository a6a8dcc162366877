// One message of every kind, with every field set.
#pragma once

#include "common/control/messages.h"

namespace dt {

inline HeartbeatMessage HeartbeatSample() {
  const ProcessStats stats{1.5, 100, 200, 300};
  const PeerReport peers{ViewNumber(3), ProcessId(2), 1.5, true};
  const ThreadReport thread{"train", "waits for rows of step 4", 0.25, true, true};
  return HeartbeatMessage{5,
                          640,
                          stats,
                          99,
                          {{"item", 1, 2, 3, 4, 0, 0, 7, 8, 9, 10, 11}},
                          {1024, 2048, {{ShardId(5), ProcessId(2), 512, 7, 9}}},
                          {{0.5, "saving"}, {3.25, ""}},
                          true,
                          {ProcessId(1), ProcessId(3)},
                          {thread},
                          peers,
                          true};
}

inline ColumnSpec ColumnSample() {
  ColumnSpec column;
  column.name = "history";
  column.type = ColumnType::kIds, column.role = ColumnRole::kFeature, column.separator = "|";
  column.length = 0, column.max_len = 50;
  column.fill = 2.5f;
  column.weighted = true;
  column.transform = "log";
  column.of = {"a", ""};
  column.from = "seen", column.weights = "seen_weights";
  column.hash = ~0ull;
  column.clip = {-1, 0.5f}, column.edges = {0.25f, 4, 9};
  column.standardise = true;
  column.mean = 7.5f, column.deviation = 0.125f;
  column.quantiles = 10;
  return column;
}

inline std::vector<ControlMessage> ControlSamples() {
  const Problem problem{"it broke", "here", "mend it"};
  const ProcessStats stats{1.5, 100, 200, 300};
  const ColumnSpec column = ColumnSample();
  const ShardMap map =
      MakeShardMap(MapVersion(3), 4,
                   {{ProcessId(1), {"tcp://a:1", "tcp://a:2"}}, {ProcessId(2), {"tcp://b:1"}}});
  return {
      JoinMessage{Role::kServer,
                  Incarnation(~0ull),
                  1,
                  "1.0",
                  4711,
                  "host",
                  99,
                  {"tcp://a:1"},
                  88,
                  {{DeviceKind::kCpu, 0, "2 hardware threads", 1ull << 34},
                   {DeviceKind::kEmulated, 0, "emulated accelerator", 1ull << 32, {"fm"}}},
                  ProcessId(2),
                  "10.0.0.2"},
      DataReadyMessage{10, 20, 30, 1, 77, {column, ColumnSpec{}}, {{2, 11, 12, 13, 1, 78}}},
      ReadyMessage{},
      HeartbeatSample(),
      OrderDoneMessage{1, TrainDone{100, 6400, {12.5, 25}, {0.75, 1.5}, 3.5}},
      OrderDoneMessage{2, EvaluateDone{{{{{0, 2, 0.5, 1, 0.75, 0}, {1, 1, 0.1, 0, 0.2, 0}},
                                         {-1.0f, 0.0f, 2.0f},
                                         {0, 1, 1},
                                         {7, ~0ull, 7}},
                                        {{{0, 2, 0.5, 0, 0, 1}}, {}, {}, {}}}}},
      OrderDoneMessage{3, SaveDone{{{"dense.bin", 12, 34}}}},
      OrderDoneMessage{4, LoadDone{}},
      OrderDoneMessage{
          5, FinishDone{{{"item", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, {{1, 2, 3}}, stats}},
      FailedMessage{StatusCode::kDataLoss, problem},
      LeavingMessage{},
      KvPutMessage{"key", std::string("a\0b", 3)},
      KvGetMessage{"key"},
      StatusRequestMessage{},
      WelcomeMessage{ProcessId(4), Term(2), seconds(3), true},
      RefusedMessage{StatusCode::kInvalidArgument, problem},
      StartMessage{{Generation(1), ViewNumber(3), map, {ProcessId(3), ProcessId(4)}},
                   4,
                   2,
                   {PlanBytes{std::string("p\0n", 3)}},
                   {TableId(~0ull)},
                   900,
                   {30, 31},
                   {5, 6}},
      OrderMessage{1, TrainOrder{1, 10, 10, 20, 0.5f, {0, 1}}},
      OrderMessage{2, EvaluateOrder{20, SplitKind::kTest}},
      OrderMessage{3, SaveOrder{20, "folder"}},
      OrderMessage{4, LoadOrder{20, "folder", Generation(2)}},
      OrderMessage{5, LoadOrder{0,
                                "folder",
                                Generation(2),
                                true,
                                {{{TableId(~0ull), true, "rows.npz"}}, {"w"}, "w.npz", {"b"}}}},
      OrderMessage{6, FinishOrder{}},
      KvValueMessage{"key", "value"},
      StopMessage{StatusCode::kCancelled, problem},
      StatusReplyMessage{"{}"},
      SplitRequestMessage{7},
      SplitMessage{7, 12, 16},
      RowsWrittenMessage{7, {{"server-1/rows-0/000001.sst", 12, 34}}},
      CheckpointCommittedMessage{Generation(2), 20, "folder"},
      RecallMessage{12},
      RecalledMessage{12, 14},
      NewViewMessage{{Generation(1), ViewNumber(4), map, {ProcessId(4)}}},
      ViewReportMessage{ViewNumber(4), 20, true, true},
      ViewBeginsMessage{ViewNumber(4), 21, {ProcessId(5)}},
      ScaleRequestMessage{Role::kServer, 3},
      ReadDataMessage{4, {1, 3}},
      StreamReportMessage{{0, 3}, {{5, 9}, {0, 7}}},
  };
}

}  // namespace dt
