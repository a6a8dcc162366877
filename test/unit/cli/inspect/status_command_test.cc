// Goal: whatever answers at a scheduler's address, `status` ends with a sentence or a table.
// Method: the test itself answers over a real port.
#include <algorithm>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "common/control/key_files.h"
#include "common/control/messages.h"
#include "common/control/packet.h"
#include "common/control/session.h"
#include "common/net/socket.h"
#include "test/support/scratch_folder.h"

namespace dt::cli {
namespace {

struct Answered {
  int code = 0;
  std::string output, errors;
};

// Runs `status` with this answer.
Answered StatusOf(const std::string& json, bool as_json) {
  const test::ScratchFolder keys;
  const KeyPair pair = MakeKeyPair();
  EXPECT_TRUE(WriteKeyFiles(keys / "job", pair).ok());
  const std::unique_ptr<Network> network = MakeZmqNetwork({.curve = CurveOptions{pair, pair, {}}});
  const auto socket = *network->Bind("tcp://127.0.0.1:0");
  CommandLine line;
  line.key_path = keys / "job.key";
  line.scheduler = socket->endpoint();
  line.json = as_json;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  auto status = std::async(std::launch::async, [&line] { return RunStatus(line); });
  std::optional<Session> session;
  while (status.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    Result<PeerMessage> arrived = socket->Receive(milliseconds(10));
    if (!arrived.ok()) continue;
    Packet packet = *DecodePacket(arrived->frames);
    if (!session) session.emplace(packet.session, milliseconds(100));
    std::vector<std::string> delivered;
    std::vector<Packet> out;
    session->OnPacket(SystemClock().Now(), std::move(packet), delivered, out);
    if (!delivered.empty()) {
      const std::string reply = EncodeControl(StatusReplyMessage{json});
      EXPECT_TRUE(session->Send(SystemClock().Now(), reply, out).ok());
    }
    for (const Packet& p : out) EXPECT_TRUE(socket->Send(arrived->peer, EncodePacket(p)).ok());
  }
  return {status.get(), testing::internal::GetCapturedStdout(),
          testing::internal::GetCapturedStderr()};
}

TEST(StatusCommand, OddAnswersAreSentencesOrTables) {
  const std::pair<const char*, int> answers[] = {
      {"", 1},
      {"nonsense", 1},
      {"[]", 1},
      {"7", 1},
      {"{}", 0},
      {R"({"job": 7, "phase": null, "step": "x", "epochs": {}, "places": []})", 0},
      {R"({"processes": 7, "history": {}, "tables": []})", 0},
      {R"({"processes": [7, null, [], {"role": 3, "accelerator": {"name": 1}}]})", 0},
      {R"({"history": [3], "tables": {"t": 5, "u": {"rows": "many"}}})", 0},
      {R"({"shards": {"by_members": {"x": 1, "1": "y"}, "copies": [7, {}], "lost": [3]}})", 0},
      {R"({"shards": [], "processes": [{"draining": 7}]})", 0},
      {R"({"processes": {"a": {"role": "r"}}, "step": 1e300, "seconds_left": -1})", 0}};
  for (const auto& [json, fails] : answers) {
    for (const bool as_json : {false, true}) {
      const Answered end = StatusOf(json, as_json);
      EXPECT_EQ(end.code != 0, fails != 0) << json << end.errors;
      EXPECT_EQ(end.errors.empty(), fails == 0) << json << end.errors;
      EXPECT_EQ(end.output.empty(), fails != 0) << json;
    }
  }
}

TEST(StatusCommand, ChainsAndCopiesAreLines) {
  const Answered end = StatusOf(R"({
    "processes": [{"role": "server", "id": 3, "shards": 5, "draining": true}],
    "shards": {"map_version": 41, "count": 32, "replicas": 2, "by_members": {"1": 12, "2": 20},
      "copies": [{"shard": 7, "from": 1, "to": 4, "bytes": 1024, "rows": 12, "rows_of_shard": 40},
                 {"shard": 9, "from": 1, "to": 4, "bytes": 0, "rows": 0, "rows_of_shard": 0}],
      "copies_left": 14, "bytes_left": 2048, "bytes_per_second": 1024, "seconds_left": 2.2,
      "lost": ["server 2 was killed"]}})",
                                false);
  EXPECT_EQ(end.code, 0) << end.errors;
  for (const char* line : {"  32 shards with 2 copies each, version 41 of the map; "
                           "12 of 32 shards have 1 of 2 members\n",
                           "  server 3 drains: 5 shards left\n",
                           "  copying shard 7 from server 1 to server 4: 12 of 40 rows, 1 KiB\n",
                           "  copying shard 9 from server 1 to server 4: waits for its turn\n",
                           "  shards left to copy: 14, about 2 KiB, 1 KiB/s, about 2 s left\n",
                           "  lost: server 2 was killed\n"}) {
    EXPECT_NE(end.output.find(line), std::string::npos) << line << "is not in\n" << end.output;
  }
}

TEST(StatusCommand, TheAnswerSteersNoTerminal) {
  for (const bool as_json : {false, true}) {
    const Answered end =
        StatusOf("{\"job\": \"\\u001b[31m\xc2\x9b\", \"tables\": {\"\\u0007\": {}}}", as_json);
    EXPECT_EQ(end.code, 0) << end.errors;
    EXPECT_EQ(end.output.find_first_of("\x1b\x07\x9b"), std::string::npos) << end.output;
  }
}

}  // namespace
}  // namespace dt::cli
