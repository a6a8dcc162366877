// The two halves of moving rows to another server, each on its own: the references for grow.py.
//
//   bare_move copy MEBIBYTES    bytes from the memory of one process into that of another, over the
//                               sockets that servers use; parts of 256 KiB, four of them under way
//   bare_move insert MEBIBYTES  rows of 256 values with the state of Adam into an empty table
//
// Prints bytes a second.
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/net/shm/shm_network.h"
#include "common/net/socket.h"
#include "server/table/embedding_table.h"

namespace dt {
namespace {

constexpr size_t kPart = 256 << 10, kPartsAhead = 4;
constexpr size_t kMemory = size_t{1} << 30;  // On each side; used again and again.

struct Networks {
  explicit Networks(const KeyPair& keys)
      : zmq(MakeZmqNetwork({.curve = CurveOptions{.job = keys, .own = keys, .allowed = {}}})),
        shm(MakeShmNetwork(*zmq)) {}
  std::unique_ptr<Network> zmq, shm;
};

template <class T>
T Checked(Result<T> result) {
  DT_CHECK_MSG(result.ok(), "{}", ToText(result.status()));
  return *std::move(result);
}

void PrintRate(size_t bytes, TimePoint begin) {
  fmt::print("{:.0f}\n", static_cast<double>(bytes) / SecondsBetween(begin, SystemClock().Now()));
}

// Takes all parts; writes its endpoint to the pipe first.
void Take(const KeyPair& keys, int pipe, size_t parts) {
  Networks networks(keys);
  const auto socket = Checked(networks.shm->Bind("tcp://127.0.0.1:0"));
  const std::string line = socket->endpoint() + "\n";
  DT_CHECK(write(pipe, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  std::vector<std::byte> memory(kMemory);
  for (size_t part = 0; part < parts; ++part) {
    const PeerMessage message = Checked(socket->Receive(std::chrono::seconds(60)));
    const auto bytes = message.frames[0].bytes();
    std::memcpy(&memory[part * kPart % kMemory], bytes.data(), bytes.size());
    Frames answer;
    answer.push_back(Frame::CopyOf(std::as_bytes(std::span(&part, 1))));
    DT_CHECK(socket->Send(message.peer, std::move(answer)).ok());
  }
}

void Give(const KeyPair& keys, const std::string& endpoint, size_t parts) {
  Networks networks(keys);
  const auto socket = Checked(networks.shm->Connect(endpoint));
  const std::vector<std::byte> memory(kMemory, std::byte{1});
  const TimePoint begin = SystemClock().Now();
  for (size_t part = 0; part < parts + kPartsAhead; ++part) {
    if (part >= kPartsAhead) Checked(socket->Receive(std::chrono::seconds(60)));
    if (part >= parts) continue;
    Frames frames;
    frames.push_back(networks.shm->frames().Make(kPart));
    std::memcpy(frames[0].bytes().data(), &memory[part * kPart % kMemory], kPart);
    DT_CHECK(socket->Send(std::move(frames)).ok());
  }
  PrintRate(parts * kPart, begin);
}

void Copy(size_t bytes) {
  const size_t parts = bytes / kPart;
  const KeyPair keys = MakeKeyPair();
  int pipes[2];
  DT_CHECK(pipe(pipes) == 0);
  const pid_t taker = fork();
  DT_CHECK(taker >= 0);
  if (taker == 0) {
    Take(keys, pipes[1], parts);
    _exit(0);
  }
  char text[256] = {};
  DT_CHECK(read(pipes[0], text, sizeof(text) - 1) > 0);
  Give(keys, std::string(text, std::strcspn(text, "\n")), parts);
  int status = 0;
  DT_CHECK(waitpid(taker, &status, 0) == taker && status == 0);
}

void Insert(size_t bytes) {
  server::TableSpec spec;
  spec.name = "rows";
  spec.id = TableIdOf(spec.name);
  spec.dim = 256;
  spec.optimizer.kind = OptimizerKind::kAdam;
  server::TableRows rows(spec);
  server::EmbeddingTable table(rows);
  const size_t record = table.record_bytes(), records = (size_t{64} << 20) / record;
  const std::vector<std::byte> memory(records * record, std::byte{1});
  const TimePoint begin = SystemClock().Now();
  const size_t count = bytes / record;
  for (size_t row = 0; row < count; ++row) {
    const auto from = std::span(memory).subspan(row % records * record, record);
    DT_CHECK(table.Replace(MixBits(row), from).ok());
  }
  PrintRate(count * record, begin);
}

int Main(int argc, char** argv) {
  DT_CHECK_MSG(argc == 3, "bare_move copy|insert MEBIBYTES");
  const size_t bytes = std::stoul(argv[2]) << 20;
  if (std::string_view(argv[1]) == "copy") {
    Copy(bytes);
  } else {
    Insert(bytes);
  }
  return 0;
}

}  // namespace
}  // namespace dt

int main(int argc, char** argv) { return dt::Main(argc, argv); }
