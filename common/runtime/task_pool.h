// Threads for arithmetic and parsing. The only code that uses oneTBB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace dt {

class TaskPool {
 public:
  // At most `threads` run at once, the calling thread included; 0: one for each core of the
  // machine.
  explicit TaskPool(uint32_t threads = 0);
  ~TaskPool();
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;

  uint32_t threads() const;

  // Cuts [0, n) into pieces of `grain` (the last may be shorter), calls body(begin, end) once for
  // each piece, in any order and on any thread, and returns when all are done. The pieces depend on
  // (n, grain) alone, so a body that sums inside its piece gives the same bits with any number of
  // threads. Any thread; calls may nest.
  void ParallelFor(size_t n, size_t grain, absl::FunctionRef<void(size_t begin, size_t end)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dt
