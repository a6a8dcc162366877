#include "scheduler/checkpoint/manifest.h"

#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/storage/json_file.h"

namespace dt::scheduler {
namespace {

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

template <class T>
std::optional<T> OptionalOf(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return json.get<T>();
}

uint64_t HexNumber(const Json& json) { return std::stoull(json.get<std::string>(), nullptr, 16); }

Json MetricsJson(const LossMetrics& metrics) {
  Json all = Json::array();
  for (const Metrics& m : metrics) {
    all.push_back({{"loss", m.loss},
                   {"auc", OrNull(m.auc)},
                   {"logloss", OrNull(m.logloss)},
                   {"calibration", OrNull(m.calibration)},
                   {"accuracy", OrNull(m.accuracy)},
                   {"samples", m.samples},
                   {"auc_exact", m.auc_exact}});
  }
  return all;
}

LossMetrics MetricsOf(const Json& json) {
  LossMetrics all;
  for (const Json& m : json) {
    all.push_back({.auc = OptionalOf<double>(m.at("auc")),
                   .logloss = OptionalOf<double>(m.at("logloss")),
                   .calibration = OptionalOf<double>(m.at("calibration")),
                   .samples = m.at("samples").get<uint64_t>(),
                   .auc_exact = m.at("auc_exact").get<bool>(),
                   .accuracy = OptionalOf<double>(m.at("accuracy")),
                   .loss = m.at("loss").get<std::string>()});
  }
  return all;
}

Json MeansJson(const LossMeans& means) {
  Json all = Json::array();
  for (const LossMean& of : means) all.push_back({{"loss", of.loss}, {"mean", of.mean}});
  return all;
}

LossMeans MeansOf(const Json& json) {
  LossMeans all;
  for (const Json& m : json)
    all.push_back({m.at("loss").get<std::string>(), m.at("mean").get<double>()});
  return all;
}

Json DecisionsJson(const DecisionState& d) {
  return {{"rate_scale", d.rate_scale},
          {"plateau_without_gain", d.plateau_without_gain},
          {"stop_without_gain", d.stop_without_gain},
          {"plateau_best", OrNull(d.plateau_best)},
          {"stop_best", OrNull(d.stop_best)},
          {"best_step", OrNull(d.best_step)},
          {"best_epoch", d.best_epoch},
          {"best", d.best.has_value() ? MetricsJson(*d.best) : Json(nullptr)},
          {"stopped", d.stopped}};
}

DecisionState DecisionsOf(const Json& json) {
  DecisionState d;
  d.rate_scale = json.at("rate_scale").get<float>();
  d.plateau_without_gain = json.at("plateau_without_gain").get<uint32_t>();
  d.stop_without_gain = json.at("stop_without_gain").get<uint32_t>();
  d.plateau_best = OptionalOf<double>(json.at("plateau_best"));
  d.stop_best = OptionalOf<double>(json.at("stop_best"));
  d.best_step = OptionalOf<Step>(json.at("best_step"));
  d.best_epoch = json.at("best_epoch").get<uint64_t>();
  if (!json.at("best").is_null()) d.best = MetricsOf(json.at("best"));
  d.stopped = json.at("stopped").get<bool>();
  return d;
}

Json HistoryJson(const std::vector<JobResult::Evaluation>& history) {
  Json all = Json::array();
  for (const JobResult::Evaluation& e : history) {
    all.push_back({{"epoch", e.epoch},
                   {"step", e.step},
                   {"rate_scale", e.rate_scale},
                   {"learning_rate", e.learning_rate},
                   {"train", MeansJson(e.train)},
                   {"valid", MetricsJson(e.valid)}});
  }
  return all;
}

Json CurveJson(const std::vector<JobResult::CurvePoint>& curve) {
  Json all = Json::array();
  for (const JobResult::CurvePoint& point : curve) {
    all.push_back({{"step", point.step},
                   {"seconds", point.seconds},
                   {"samples", point.samples},
                   {"learning_rate", point.learning_rate},
                   {"losses", MeansJson(point.losses)},
                   {"pieces", point.pieces}});
  }
  return all;
}

Json CourseJson(const CourseState& c) {
  return {{"step", c.step},
          {"samples", c.samples},
          {"train_seconds", c.train_seconds},
          {"epoch_loss_sums", c.epoch_loss_sums},
          {"epoch_samples", c.epoch_samples},
          {"first_losses", c.first_losses},
          {"evaluated", OrNull(c.evaluated)},
          {"decisions", DecisionsJson(c.decisions)},
          {"history", HistoryJson(c.history)},
          {"curve", CurveJson(c.curve)}};
}

CourseState CourseOf(const Json& json) {
  CourseState c;
  c.step = json.at("step").get<Step>();
  c.samples = json.at("samples").get<uint64_t>();
  c.train_seconds = json.at("train_seconds").get<double>();
  c.epoch_loss_sums = json.at("epoch_loss_sums").get<std::vector<double>>();
  c.epoch_samples = json.at("epoch_samples").get<uint64_t>();
  c.first_losses = json.at("first_losses").get<std::vector<double>>();
  c.evaluated = OptionalOf<Step>(json.at("evaluated"));
  c.decisions = DecisionsOf(json.at("decisions"));
  for (const Json& e : json.at("history")) {
    c.history.push_back({e.at("epoch").get<uint64_t>(), e.at("step").get<uint64_t>(),
                         e.at("rate_scale").get<float>(), e.at("learning_rate").get<double>(),
                         MetricsOf(e.at("valid")), MeansOf(e.at("train"))});
  }
  for (const Json& p : json.at("curve")) {
    c.curve.push_back({p.at("step").get<uint64_t>(), p.at("seconds").get<double>(),
                       p.at("samples").get<uint64_t>(), p.at("learning_rate").get<double>(),
                       MeansOf(p.at("losses")), p.at("pieces").get<uint32_t>()});
  }
  return c;
}

Manifest ManifestOf(const Json& json) {
  Manifest m;
  m.job = json.at("job").get<std::string>();
  m.course = CourseOf(json.at("course"));
  m.train_rows = json.value("train_rows", uint64_t{0});
  m.slices = json.at("slices").get<uint32_t>();
  m.tables = json.at("tables").get<std::vector<std::string>>();
  m.resume_fingerprint = HexNumber(json.at("resume_fingerprint"));
  m.resume_text = json.at("resume_text").get<std::string>();
  m.model = json.at("model").dump(-1, ' ', true, Json::error_handler_t::replace);
  m.written = json.at("written").get<std::string>();
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
               {"step", m.course.step},
               {"written", m.written},
               {"course", CourseJson(m.course)},
               {"train_rows", m.train_rows},
               {"slices", m.slices},
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
  } catch (const std::exception& e) {  // nlohmann's and std::stoull's.
    return WithWhere(DataLoss("the checkpoint's manifest is damaged: {}", e.what()), where);
  }
}

}  // namespace dt::scheduler
