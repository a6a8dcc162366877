#include "worker/data/kafka/kafka_library.h"

#include <filesystem>

#include <dlfcn.h>

namespace dt::worker {
namespace {

constexpr std::string_view kInstall =
    "install the Debian package librdkafka-dev (scripts/setup.sh does), and build again";
constexpr std::string_view kPackage = "the Debian package librdkafka1 has what it needs";

}  // namespace

std::string KafkaLibrary::DefaultPath() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / "libdovetail_kafka.so").string();
}

Result<KafkaLibrary> KafkaLibrary::Open(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return WithHint(
        WithWhere(Unavailable("format: kafka needs librdkafka, and this build has no such library"),
                  path),
        kInstall);
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const why = dlerror();
    return WithHint(Unavailable("format: kafka needs librdkafka, which cannot be loaded: {}",
                                why == nullptr ? "unknown reason" : why),
                    kPackage);
  }
  void* const symbol = dlsym(library, kKafkaTableSymbol);
  KafkaTable table;
  if (symbol == nullptr || !reinterpret_cast<FillKafkaTable>(symbol)(kKafkaTableVersion, &table)) {
    dlclose(library);
    return WithHint(
        WithWhere(Unavailable("the Kafka library belongs to another build of the program"), path),
        "build both together: cmake --workflow --preset release");
  }
  return KafkaLibrary(table);
}

Status ToStatus(const KafkaError& error, std::string_view subject) {
  switch (error.code) {
    case KafkaCode::kOk:
      return OkStatus();
    case KafkaCode::kInvalid:
      return Invalid("{}: {}", subject, error.text);
    case KafkaCode::kNotFound:
      return NotFound("{}: {}", subject, error.text);
    case KafkaCode::kDeleted:
      return Malformed("{}: {}", subject, error.text);
    case KafkaCode::kUnavailable:
      break;
  }
  return Unavailable("{}: {}", subject, error.text);
}

}  // namespace dt::worker
