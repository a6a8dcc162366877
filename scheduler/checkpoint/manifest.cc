#include "scheduler/checkpoint/manifest.h"

#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/storage/json_fields.h"

namespace dt::scheduler {
namespace {

uint64_t HexNumber(const Json& json) { return std::stoull(json.get<std::string>(), nullptr, 16); }

Manifest ManifestOf(const Json& json) {
  Manifest m;
  m.job = json.at("job").get<std::string>();
  FieldsFromJson(json.at("course"), m.schedule);
  m.train_rows = json.value("train_rows", uint64_t{0});
  m.slices = json.at("slices").get<uint32_t>();
  m.steps_before = json.value("steps_before", Step{0});
  m.tables = json.at("tables").get<std::vector<std::string>>();
  m.resume_fingerprint = HexNumber(json.at("resume_fingerprint"));
  m.resume_text = json.at("resume_text").get<std::string>();
  m.model = json.at("model").dump(-1, ' ', true, Json::error_handler_t::replace);
  m.written = json.at("written").get<std::string>();
  m.order = json.value("order", "");
  for (const Json& file : json.at("files")) {
    m.files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<uint64_t>(),
                       HexNumber(file.at("digest"))});
  }
  return m;
}

std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string ManifestToJson(const Manifest& m) {
  Json files = Json::array();
  for (const CheckpointFile& file : m.files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"digest", HexOf(file.digest)}});
  }
  Json json = {{"format", kManifestFormat},
               {"job", m.job},
               {"step", m.schedule.step},
               {"written", m.written},
               {"order", m.order},
               {"course", FieldsToJson(m.schedule)},
               {"train_rows", m.train_rows},
               {"slices", m.slices},
               {"steps_before", m.steps_before},
               {"tables", m.tables},
               {"resume_fingerprint", HexOf(m.resume_fingerprint)},
               {"resume_text", m.resume_text},
               {"model", Json::parse(m.model, nullptr, false)},
               {"files", std::move(files)}};
  json["digest"] = HexOf(HashString(Dump(json)));
  return Dump(json) + "\n";
}

Result<Manifest> ManifestFromJson(const std::string& text, const std::string& where) {
  Result<Json> parsed = ParseJson(text, where);
  if (!parsed.ok()) {
    return WithWhere(
        DataLoss("the checkpoint's manifest is damaged: {}", MessageOf(parsed.status())), where);
  }
  try {
    Json& json = *parsed;
    const uint32_t format = json.at("format").get<uint32_t>();
    if (format != kManifestFormat) {
      const bool older = format < kManifestFormat;
      return WithHint(
          WithWhere(NotYet("the checkpoint was written by {} version of this program (format {}; "
                           "this one reads {})",
                           older ? "an earlier" : "a later", format, kManifestFormat),
                    where),
          older ? "finish or export the job with the version that wrote it, or start anew with "
                  "--resume never"
                : "use the version that wrote it");
    }
    const std::string digest = json.at("digest").get<std::string>();
    json.erase("digest");
    if (digest != HexOf(HashString(Dump(json)))) {
      return WithWhere(DataLoss("the checkpoint's manifest is damaged: its digest differs"), where);
    }
    return ManifestOf(json);
  } catch (const std::exception& e) {  // Thrown by nlohmann::json or std::stoull.
    return WithWhere(DataLoss("the checkpoint's manifest is damaged: {}", e.what()), where);
  }
}

}  // namespace dt::scheduler
