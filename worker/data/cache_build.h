// Makes a split's cache file from its inputs: reading, parsing and writing overlap, block by block.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/runtime/task_pool.h"
#include "worker/data/split_source.h"

namespace dt::worker {

// Writes the cache of `source` to `path`. Memory is bounded by some blocks per thread, whatever the
// size of the inputs. The content depends on the inputs only, not on the number of threads. Errors:
// Malformed "file:line: …" for the first bad row in the order of the inputs (on_error stop), for
// damaged compression, or if there is no row at all; Unavailable for disks and commands that fail.
// A part of a split may have no rows: then no file is written. Returns the number of rows.
Result<uint64_t> BuildCache(SplitSource& source, OnError on_error, const std::string& path,
                            TaskPool& pool);

}  // namespace dt::worker
