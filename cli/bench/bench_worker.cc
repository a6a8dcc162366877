#include "cli/bench/bench_worker.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/base/hash.h"

namespace dt::cli {
namespace {

constexpr Duration kTimeout = seconds(20);
constexpr size_t kBatches = 16;  // Successive requests use different rows.
constexpr size_t kRowsAtFirst = 16'384;
constexpr size_t kFloatsOfLine = 16;
const Stamp kStamp{Generation(1), ViewNumber(1), MapVersion(1), ProcessId(1)};

Key KeyOf(uint64_t row) { return MixBits(row + 1); }
float FirstValueOf(uint64_t row) { return static_cast<float>(row % 1000); }

ShardId ShardOfRow(uint64_t row) {
  static const TableId table = TableIdOf("bench");
  return ShardOf(table, KeyOf(row), kBenchShards);
}

void Send(ClientSocket& socket, Frames frames) {
  const Status sent = socket.Send(std::move(frames));
  DT_CHECK_MSG(sent.ok(), "{}", ToText(sent));
}

}  // namespace

BenchWorker::BenchWorker(Network& network, const std::string& endpoint)
    : endpoint_(endpoint), values_(kBenchRows, 0) {
  Reconnect(network);
}

void BenchWorker::Reconnect(Network& network) {
  auto socket = network.Connect(endpoint_);
  DT_CHECK_MSG(socket.ok(), "{}", ToText(socket.status()));
  socket_ = *std::move(socket);
  frames_ = &network.frames();
  for (auto& [rows, batches] : batches_) {
    for (Batch& batch : batches) {
      for (Part& part : batch.parts) part.keys = frames_->CopyOf(part.keys.bytes());
    }
  }
}

Frame BenchWorker::GradientsOf(size_t rows) {
  return frames_->Make(rows * kBenchDim * sizeof(float));
}

// ------------------------------------------------------------ keys

BenchWorker::Part BenchWorker::MakePart(std::span<const uint64_t> row_numbers, size_t first) {
  Part part{.first = first, .rows = row_numbers.size()};
  part.keys = frames_->Make(row_numbers.size() * sizeof(Key));
  Key* key = part.keys.as<Key>().data();
  for (const uint64_t row : row_numbers) {
    *key++ = KeyOf(row);
    const ShardId shard = ShardOfRow(row);
    if (part.groups.empty() || part.groups.back().shard != shard) {
      part.groups.push_back({shard, 0, 0});
    }
    ++part.groups.back().rows;
  }
  return part;
}

// The rows of a shard in each message are one of its pieces. Shards without rows are named in the
// first message.
void BenchWorker::NamePieces(std::vector<Part>& parts) {
  std::vector<uint32_t> pieces(kBenchShards), next(kBenchShards);
  for (const Part& part : parts) {
    for (const KeyGroup& group : part.groups) ++pieces[group.shard.value()];
  }
  for (uint32_t s = 0; s < kBenchShards; ++s) {
    const auto add = [&](Part& part) {
      part.pieces.push_back({ShardId(s), next[s]++, std::max(1u, pieces[s])});
    };
    if (pieces[s] == 0) add(parts.front());
    for (Part& part : parts) {
      if (std::ranges::count(part.groups, ShardId(s), &KeyGroup::shard) > 0) add(part);
    }
  }
}

BenchWorker::Batch BenchWorker::MakeBatch(std::vector<uint64_t> row_numbers) {
  std::ranges::stable_sort(row_numbers, {}, ShardOfRow);
  Batch batch{.row_numbers = std::move(row_numbers)};
  const std::span<const uint64_t> all = batch.row_numbers;
  for (size_t first = 0; first < all.size(); first += kBenchPartRows) {
    const size_t rows = std::min(kBenchPartRows, all.size() - first);
    batch.parts.push_back(MakePart(all.subspan(first, rows), first));
  }
  NamePieces(batch.parts);
  return batch;
}

// Each request has one row from each stretch of equal length.
std::vector<BenchWorker::Batch>& BenchWorker::BatchesOf(size_t rows) {
  std::vector<Batch>& batches = batches_[rows];
  const uint64_t stretch = kBenchRows / rows;
  for (uint64_t b = batches.size(); b < kBatches; ++b) {
    std::vector<uint64_t> row_numbers;
    for (uint64_t i = 0; i < rows; ++i) {
      row_numbers.push_back(i * stretch + MixBits(b * rows + i + 77) % stretch);
    }
    batches.push_back(MakeBatch(std::move(row_numbers)));
  }
  return batches;
}

// ------------------------------------------------------------ requests

void BenchWorker::SendPull(const Batch& batch) {
  for (const Part& part : batch.parts) {
    Send(*socket_, Encode(PullRequest{.request = ++sent_,
                                      .stamp = kStamp,
                                      .step = step_,
                                      .groups = part.groups,
                                      .keys = part.keys}));
  }
}

void BenchWorker::SendPush(const Batch& batch, std::span<const Frame> gradients) {
  for (const Part& part : batch.parts) {
    const auto number = static_cast<uint32_t>(&part - batch.parts.data());
    PushRequest push;
    push.request = ++sent_;
    push.stamp = kStamp;
    push.step = step_;
    push.pieces = part.pieces;
    push.groups = part.groups;
    push.keys = part.keys;
    push.gradients = gradients[number];
    Send(*socket_, Encode(push));
  }
  ++step_;
}

DataReply BenchWorker::NextReply() {
  Result<Frames> frames = socket_->Receive(kTimeout);
  DT_CHECK_MSG(frames.ok(), "{}", ToText(frames.status()));
  Result<DataReply> reply = DecodeDataReply(*std::move(frames));
  DT_CHECK_MSG(reply.ok() && reply->status.ok(), "{}",
               ToText(reply.ok() ? reply->status : reply.status()));
  DT_CHECK(reply->request == ++answered_);
  return *std::move(reply);
}

template <class SendOne, class TakeOne>
void BenchWorker::Loop(const BenchLoad& load, Latencies& latencies, SendOne send, TakeOne take) {
  std::vector<TimePoint> begun(load.requests);
  for (size_t sent = 0, taken = 0; taken < load.requests;) {
    while (sent < load.requests && sent - taken < load.in_flight) {
      begun[sent] = SystemClock().Now();
      send(sent++);
    }
    take(taken);
    const double seconds = SecondsBetween(begun[taken++], SystemClock().Now());
    latencies.push_back(static_cast<float>(seconds * 1e6));
  }
}

void BenchWorker::PushAllRows() {
  for (uint64_t begin = 0; begin < kBenchRows; begin += kRowsAtFirst) {
    std::vector<uint64_t> row_numbers(kRowsAtFirst);
    for (uint64_t i = 0; i < kRowsAtFirst; ++i) row_numbers[i] = begin + i;
    const Batch batch = MakeBatch(std::move(row_numbers));
    std::vector<Frame> gradients;
    for (const Part& part : batch.parts) {
      gradients.push_back(GradientsOf(part.rows));
      float* out = gradients.back().as<float>().data();
      for (size_t i = 0; i < part.rows; ++i) {
        const uint64_t row = batch.row_numbers[part.first + i];
        values_[row] = FirstValueOf(row);
        out = std::fill_n(out, kBenchDim, -values_[row]);  // The learning rate is 1.
      }
    }
    SendPush(batch, gradients);
    for (size_t i = 0; i < batch.parts.size(); ++i) NextReply();
  }
}

void BenchWorker::BringUpToDate(size_t rows) {
  for (auto& [other, batches] : batches_) {
    for (Batch& batch : batches) {
      for (const uint64_t row : batch.row_numbers) values_[row] -= static_cast<float>(batch.pushed);
      batch.pushed = 0;
    }
  }
  for (Batch& batch : BatchesOf(rows)) {
    batch.values.clear();
    for (const uint64_t row : batch.row_numbers) batch.values.push_back(values_[row]);
  }
}

void BenchWorker::Pull(const BenchLoad& load, Latencies& latencies) {
  const std::vector<Batch>& all = BatchesOf(load.rows);
  Loop(
      load, latencies, [&](size_t i) { SendPull(all[i % kBatches]); },
      [&](size_t i) {
        const Batch& batch = all[i % kBatches];
        const std::span<const float> expected = batch.values;
        for (const Part& part : batch.parts) {
          Check(expected.subspan(part.first, part.rows), NextReply().values);
        }
      });
}

void BenchWorker::Check(std::span<const float> expected, const Frame& values) {
  constexpr size_t kLines = kBenchDim / kFloatsOfLine;
  DT_CHECK(values.size() == expected.size() * kBenchDim * sizeof(float));
  const float* row = values.as<float>().data();
  for (const float value : expected) {
    float sum = 0;
    for (size_t d = 0; d < kBenchDim; d += kFloatsOfLine) sum += row[d];
    DT_CHECK(sum == float{kLines} * value);
    row += kBenchDim;
  }
}

void BenchWorker::Push(const BenchLoad& load, Latencies& latencies) {
  std::vector<Batch>& all = BatchesOf(load.rows);
  std::vector<Frame> gradients;
  for (const Part& part : all[0].parts) {
    gradients.push_back(GradientsOf(part.rows));
    std::ranges::fill(gradients.back().as<float>(), 1.0f);
  }
  Loop(
      load, latencies,
      [&](size_t i) {
        ++all[i % kBatches].pushed;
        SendPush(all[i % kBatches], gradients);
      },
      [&](size_t i) {
        for (size_t p = 0; p < all[i % kBatches].parts.size(); ++p) NextReply();
      });
}

// ------------------------------------------------------------ sizes

size_t BenchWorker::RequestBytes(size_t rows, bool push) {
  size_t bytes = 0;
  for (const Part& part : BatchesOf(rows)[0].parts) {
    PushRequest request;
    request.pieces = part.pieces;
    request.groups = part.groups;
    request.keys = part.keys;
    request.gradients = GradientsOf(part.rows);
    bytes += push ? BytesIn(Encode(request))
                  : BytesIn(Encode(PullRequest{.groups = part.groups, .keys = part.keys}));
  }
  return bytes;
}

size_t BenchWorker::AnswerBytes(size_t rows, bool push) {
  size_t bytes = 0;
  for (const Part& part : BatchesOf(rows)[0].parts) {
    bytes += BytesIn(Encode(DataReply{.values = push ? Frame() : GradientsOf(part.rows)}));
  }
  return bytes;
}

}  // namespace dt::cli
