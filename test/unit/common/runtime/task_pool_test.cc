#include "common/runtime/task_pool.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/mutex.h"

namespace dt {
namespace {

using Pieces = std::vector<std::pair<size_t, size_t>>;

Pieces PiecesOf(TaskPool& pool, size_t n, size_t grain) {
  Pieces pieces;
  Mutex mutex;
  pool.ParallelFor(n, grain, [&](size_t begin, size_t end) {
    MutexLock lock(mutex);
    pieces.emplace_back(begin, end);
  });
  std::sort(pieces.begin(), pieces.end());
  return pieces;
}

TEST(TaskPool, PiecesDependOnSizeAndGrainAlone) {
  TaskPool one(1), many(4);
  EXPECT_EQ(PiecesOf(one, 10, 4), (Pieces{{0, 4}, {4, 8}, {8, 10}}));
  for (const size_t n : {0u, 1u, 7u, 64u, 1000u}) {
    for (const size_t grain : {1u, 3u, 64u, 2000u}) {
      EXPECT_EQ(PiecesOf(one, n, grain), PiecesOf(many, n, grain)) << n << " by " << grain;
    }
  }
}

TEST(TaskPool, NestsAndReturnsWhenAllIsDone) {
  TaskPool pool(3);
  std::atomic<size_t> count = 0;
  pool.ParallelFor(16, 1, [&](size_t, size_t) {
    pool.ParallelFor(100, 7, [&](size_t begin, size_t end) { count += end - begin; });
  });
  EXPECT_EQ(count, 1600u);
}

TEST(TaskPool, HasAtLeastTheCallingThread) {
  EXPECT_GE(TaskPool().threads(), 1u);
  EXPECT_EQ(TaskPool(1).threads(), 1u);
}

}  // namespace
}  // namespace dt
