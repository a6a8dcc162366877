#include "test/hostile/attack.h"

#include <algorithm>

#include "common/base/hash.h"

namespace dt::test {
namespace {

// Rows of the tables of a tiny job (tiny_job.h): 16 shards, tables "deep" and "wide".
struct Rows {
  KeyGroups groups;
  Frame keys;
  Frame gradients;
};
Rows RowsOf(Random& random, size_t rows_of_shard) {
  Rows rows;
  std::vector<Key> keys;
  size_t floats = 0;
  for (uint32_t shard = 0; shard < 16; ++shard) {
    if (random() % 2 == 0) continue;
    const uint32_t table = static_cast<uint32_t>(random() % 2);
    uint32_t count = 0;
    for (Key key = random() % 100'000; count < rows_of_shard; ++key) {
      if (ShardOf(TableIdOf(table == 0 ? "deep" : "wide"), key, 16) != ShardId(shard)) continue;
      keys.push_back(key);
      ++count;
    }
    rows.groups.push_back({ShardId(shard), table, count});
    floats += count * (table == 0 ? 8 : 1);
  }
  rows.keys = Frame::CopyOf(std::as_bytes(std::span(keys)));
  rows.gradients = Frame::Of(floats * sizeof(float));
  std::ranges::fill(rows.gradients.bytes(), std::byte{0x7f});
  return rows;
}

}  // namespace

Frames StaleRequest(Random& random, size_t rows_of_shard) {
  Rows rows = RowsOf(random, rows_of_shard);
  if (random() % 2 == 0) {
    PullRequest pull{.request = random(), .step = random() % 100};
    pull.groups = std::move(rows.groups);
    pull.keys = std::move(rows.keys);
    return Encode(pull);
  }
  PushRequest push{.request = random(), .step = random() % 100, .slices = 2};
  push.groups = std::move(rows.groups);
  push.keys = std::move(rows.keys);
  push.gradients = std::move(rows.gradients);
  return Encode(push);
}

PullRequest FirstRows(Random& random, size_t rows_of_shard) {
  Rows rows = RowsOf(random, rows_of_shard);
  PullRequest pull{.request = random(),
                   .stamp = {Generation(1), ViewNumber(1), MapVersion(1), ProcessId(1)},
                   .mode = random() % 2 == 0 ? PullMode::kEvaluate : PullMode::kPrefetch};
  pull.groups = std::move(rows.groups);
  pull.keys = std::move(rows.keys);
  return pull;
}

std::string RandomBytes(Random& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& b : bytes) b = static_cast<char>(random());
  return bytes;
}

std::string Damaged(std::string bytes, Random& random) {
  for (uint64_t times = 1 + random() % 4; times > 0 && !bytes.empty(); --times) {
    const size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(at, RandomBytes(random, 1 + random() % 16));
        break;
      case 4:
        bytes.insert(at, bytes.substr(at, 1 + random() % 64));
        break;
      case 5:
        bytes.insert(at, std::string(1 + random() % 10'000, "[{\"0-\xff"[random() % 6]));
        break;
    }
  }
  return bytes;
}

}  // namespace dt::test
