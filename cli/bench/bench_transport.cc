// Answers of 4,096 rows of 64 floats from another thread over tcp loopback, one request in flight
// and eight, against a copy of as many bytes.
#include <cstring>
#include <thread>

#include "cli/bench/bench.h"
#include "common/base/check.h"
#include "common/net/socket.h"

namespace dt::cli {
namespace {

constexpr size_t kAnswerBytes = 4096 * 64 * sizeof(float);
constexpr int kRequests = 200;
constexpr int kRepeats = 5;
constexpr Duration kPatience = seconds(10);

void Serve(ServerSocket& socket, std::stop_token stop) {
  while (!stop.stop_requested()) {
    Result<PeerMessage> request = socket.Receive(milliseconds(100));
    if (!request.ok()) continue;
    Frames answer;
    answer.push_back(Frame::Of(kAnswerBytes));
    if (!socket.Send(request->peer, std::move(answer)).ok()) return;
  }
}

void Ask(ClientSocket& socket, int in_flight) {
  for (int sent = 0, received = 0; received < kRequests;) {
    while (sent < kRequests && sent - received < in_flight) {
      Frames request;
      request.push_back(Frame::Of(64));
      DT_CHECK(socket.Send(std::move(request)).ok());
      ++sent;
    }
    DT_CHECK(socket.Receive(kPatience).ok());
    ++received;
  }
}

}  // namespace

std::vector<BenchCase> BenchTransport() {
  const std::unique_ptr<Network> network = MakeZmqNetwork({});
  auto server = network->Bind("tcp://127.0.0.1:0");
  DT_CHECK_MSG(server.ok(), "{}", ToText(server.status()));
  auto client = network->Connect((*server)->endpoint());
  DT_CHECK_MSG(client.ok(), "{}", ToText(client.status()));
  const std::jthread serving([&](std::stop_token stop) { Serve(**server, stop); });

  constexpr double kWork = static_cast<double>(kAnswerBytes) * kRequests / 1e9;  // GB
  std::vector<std::byte> from(kAnswerBytes), to(kAnswerBytes);
  const auto copy = MeasureRate(kWork, kRepeats, [&] {
    for (int i = 0; i < kRequests; ++i) std::memcpy(to.data(), from.data(), kAnswerBytes);
  });
  const auto one = MeasureRate(kWork, kRepeats, [&] { Ask(**client, 1); });
  const auto eight = MeasureRate(kWork, kRepeats, [&] { Ask(**client, 8); });
  return {{"1 MiB answers over tcp, 1 in flight", "", "GB/s", one, "memcpy", copy},
          {"1 MiB answers over tcp, 8 in flight", "", "GB/s", eight, "memcpy", copy}};
}

}  // namespace dt::cli
