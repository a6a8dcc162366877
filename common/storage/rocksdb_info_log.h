// RocksDB's own messages, written to our log. Only for the files of this directory.
#pragma once

#include <memory>

#include <rocksdb/env.h>

namespace dt {

// Logs RocksDB's warnings and errors as debug events, and replaces its LOG files. Their writer
// continues after an error, which Debian's build of the library answers with a failed assertion:
// a full disk would abort the process without a message.
std::shared_ptr<rocksdb::Logger> RocksInfoLog();

}  // namespace dt
