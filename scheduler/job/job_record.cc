#include "scheduler/job/job_record.h"

#include <memory>

#include "common/base/check.h"
#include "common/storage/json_fields.h"

namespace dt::scheduler {
namespace {

constexpr size_t kPrintedTextMax = 200;

// Shortens the plan's bytes and other texts that are too long to read.
void ShortenTexts(Json& json) {
  if (json.is_string() && json.get_ref<const std::string&>().size() > kPrintedTextMax) {
    json = fmt::format("({} bytes)", json.get_ref<const std::string&>().size());
  }
  if (!json.is_structured()) return;
  for (Json& item : json) ShortenTexts(item);
}

}  // namespace

std::string_view NameOf(JobPhase phase) {
  switch (phase) {
    case JobPhase::kGathering:
      return "gathering";
    case JobPhase::kReading:
      return "reading data";
    case JobPhase::kPlanning:
      return "planning";
    case JobPhase::kStarting:
      return "starting";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kEnded:
      return "ended";
  }
  DT_UNREACHABLE();
}

std::string EncodeJobRecord(const JobRecord& record) {
  const std::vector<uint8_t> bytes = Json::to_cbor(FieldsToJson(record));
  return {bytes.begin(), bytes.end()};
}

Result<JobRecord> DecodeJobRecord(std::span<const std::byte> bytes) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(bytes.data());
  // On the heap, because g++ 12 takes its optionals for uninitialized where the exception leaves.
  const auto record = std::make_unique<JobRecord>();
  try {
    FieldsFromJson(Json::from_cbor(begin, begin + bytes.size()), *record);
    return std::move(*record);
  } catch (const std::exception& e) {  // Thrown by nlohmann::json.
    return DataLoss("the scheduler's record of the job is damaged: {}", e.what());
  }
}

std::string PrintJobRecord(const JobRecord& record) {
  Json json = FieldsToJson(record);
  ShortenTexts(json);
  return PrintableJson(json);
}

}  // namespace dt::scheduler
