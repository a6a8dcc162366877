#include "scheduler/state/job_record.h"

#include <memory>

#include "common/base/check.h"
#include "common/storage/json_fields.h"

namespace dt::scheduler {
namespace {

constexpr size_t kPrintedTextMax = 200;

bool IsFixed(const std::string& name) {
  return name == "data" || name == "plan" || name == "start";
}

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

RecordParts EncodeJobRecord(const JobRecord& record, PartsOf which) {
  RecordParts parts;
  ForEachField(record, [&](const std::string& name, const auto& field) {
    if (which == PartsOf::kRun && IsFixed(name)) return;
    const std::vector<uint8_t> bytes = Json::to_cbor(FieldsToJson(field));
    parts.emplace(name, std::string(bytes.begin(), bytes.end()));
  });
  return parts;
}

Result<JobRecord> DecodeJobRecord(const RecordParts& parts) {
  // On the heap, because g++ 12 takes its optionals for uninitialized where the exception leaves.
  const auto record = std::make_unique<JobRecord>();
  try {
    ForEachField(*record, [&](const std::string& name, auto& field) {
      FieldsFromJson(Json::from_cbor(parts.at(name)), field);
    });
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
