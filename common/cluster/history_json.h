// The progress and the end of a job as JSON, for result files and `dovetail status --json`. Include
// it only in .cc files: the JSON library is slow to compile.
#pragma once

#include <vector>

#include "common/cluster/job_result.h"
#include "common/cluster/metrics_json.h"

namespace dt {

inline nlohmann::ordered_json ErrorJson(const Status& status) {
  if (status.ok()) return nullptr;
  const Problem problem = ProblemOf(status);
  return {{"what", problem.what}, {"where", problem.where}, {"hint", problem.hint}};
}

inline nlohmann::ordered_json EvaluationJson(const JobResult::Evaluation& e) {
  return {{"epoch", e.epoch},
          {"step", e.step},
          {"rate_scale", e.rate_scale},
          {"learning_rate", e.learning_rate},
          {"train", MeansJson(e.train)},
          {"valid", MetricsJson(e.valid)}};
}

inline nlohmann::ordered_json CurveJson(const std::vector<JobResult::CurvePoint>& curve) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  double begin = 0;
  for (const JobResult::CurvePoint& point : curve) {
    nlohmann::ordered_json losses = nlohmann::ordered_json::object();
    for (const LossMean& of : point.losses) losses[of.loss] = of.mean;
    std::optional<double> rate;
    if (point.seconds > begin) rate = static_cast<double>(point.samples) / (point.seconds - begin);
    all.push_back({{"step", point.step},
                   {"seconds", point.seconds},
                   {"samples_per_second", OrNull(rate)},
                   {"learning_rate", point.learning_rate},
                   {"loss", std::move(losses)}});
    begin = point.seconds;
  }
  return all;
}

inline nlohmann::ordered_json EventsJson(const std::vector<JobResult::Event>& events) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const JobResult::Event& event : events) {
    nlohmann::ordered_json json = {{"t", event.t}, {"kind", event.kind}};
    for (const auto& [key, detail] : event.details) {
      std::visit([&json, &name = key](const auto& value) { json[name] = value; }, detail);
    }
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace dt
