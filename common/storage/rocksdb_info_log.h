// Writes RocksDB's own messages to our log. Only for the files of this directory.
#pragma once

#include <memory>

#include <rocksdb/env.h>

namespace dt {

// Logs RocksDB's warnings and errors as debug events, instead of its LOG files. The writer of LOG
// files continues after an error, which fails an assertion in Debian's build of the library: a full
// disk would abort the process without a message.
std::shared_ptr<rocksdb::Logger> RocksInfoLog();

}  // namespace dt
