#include "common/storage/rocksdb_info_log.h"

#include <cstdarg>
#include <cstdio>

#include "common/base/log.h"

namespace dt {
namespace {

class InfoLog : public rocksdb::Logger {
 public:
  InfoLog() : Logger(rocksdb::WARN_LEVEL) {}
  void Logv(const char* format, va_list arguments) override {
    char text[512];
    vsnprintf(text, sizeof(text), format, arguments);
    LogDebug("rocksdb.says", {{"text", text}});
  }
  void LogHeader(const char*, va_list) override {}  // Options and versions, logged at every level.
};

}  // namespace

std::shared_ptr<rocksdb::Logger> RocksInfoLog() { return std::make_shared<InfoLog>(); }

}  // namespace dt
