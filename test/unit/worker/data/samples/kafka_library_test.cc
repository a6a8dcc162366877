// Goal: without librdkafka, a job that needs it is told which package brings it.
#include "worker/data/kafka/kafka_library.h"

#include <gmock/gmock.h>

#include "test/unit/worker/data/data_files.h"
#include "worker/data/kafka/kafka_reader.h"

namespace dt::worker {
namespace {

using ::testing::HasSubstr;

TEST(KafkaLibrary, NamesThePackageThatBringsIt) {
  const Status absent = KafkaLibrary::Open("/no/such/library.so").status();
  EXPECT_EQ(absent.code(), StatusCode::kUnavailable);
  EXPECT_THAT(ToText(absent), HasSubstr("format: kafka needs librdkafka"));
  EXPECT_THAT(ToText(absent), HasSubstr("librdkafka-dev"));
  const TempDir dir;
  const Status damaged = KafkaLibrary::Open(dir.Write("library.so", "no library")).status();
  EXPECT_THAT(ToText(damaged), HasSubstr("cannot be loaded"));
  EXPECT_FALSE(KafkaReader::Open({.library = "/no/such/library.so"}).ok());
}

}  // namespace
}  // namespace dt::worker
