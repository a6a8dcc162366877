#include "test/sim/bugs/bug.h"

#include <gtest/gtest-spi.h>

namespace dt::sim {
namespace {

std::vector<WireTable> WireTablesOf(const JobConfig& job) {
  std::vector<WireTable> tables;
  for (const server::TableSpec& table : server::TableSpecsOf(job)) {
    tables.push_back({table.dim, table.wire});
  }
  return tables;
}

}  // namespace

Bug::Bug(Story& story)
    : story_(story),
      tables_(server::TableSpecsOf(story.cluster().job())),
      wire_tables_(WireTablesOf(story.cluster().job())) {
  story.cluster().wires().SetTap([this](const std::string& to, const std::string& from,
                                        Frames& message) {
    if (!to.starts_with("sim://")) return OnControl(to, from, message);
    Result<DataRequest> request = DecodeDataRequest(message, wire_tables_);
    if (!request.ok()) return true;
    if (request->kind == DataRequest::Kind::kPush) {
      return OnPush(to, from, request->push, message);
    }
    return request->kind != DataRequest::Kind::kRecords || OnRecords(to, request->records, message);
  });
}

bool IsAsPromised(Mode mode, const Misfortunes& misfortunes, Story& story) {
  testing::TestPartResultArray failures;
  testing::ScopedFakeTestPartResultReporter report(
      testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
  ExpectAsPromised(mode, misfortunes, story);
  return failures.size() == 0;
}

}  // namespace dt::sim
