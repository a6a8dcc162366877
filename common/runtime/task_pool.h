// Threads for arithmetic and parsing. The only user of oneTBB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace dt {

class TaskPool {
 public:
  // At most `threads` at work, the calling one included; 0: as many as the machine has.
  explicit TaskPool(uint32_t threads = 0);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  uint32_t threads() const;

  // Calls body(begin, end) for [0, n) cut into pieces of `grain` (the last may be shorter), each
  // piece once, in any order and on any thread, and returns when all are done. The pieces depend on
  // (n, grain) alone, so a body that sums inside its piece gives the same bits with any number of
  // threads. Any thread; may nest.
  void ParallelFor(size_t n, size_t grain, absl::FunctionRef<void(size_t begin, size_t end)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dt
