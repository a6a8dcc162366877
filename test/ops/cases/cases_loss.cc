// Cases of losses. Each slice computes its part of the mean over the step's samples.
#include <cmath>

#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

void AddColumnLosses(CaseMaker& make) {
  const SymShape column = {Batch(), Const(1)};
  const std::pair<const char*, Attrs> losses[] = {
      {"bce_with_logits", {}},
      {"bce_with_logits", {{"pos_weight", 3.5}}},
      {"focal_with_logits", {{"gamma", 2.0}, {"alpha", 0.25}}},
      {"focal_with_logits", {{"gamma", 0.0}, {"alpha", 0.5}}},
      {"focal_with_logits", {{"gamma", 0.5}, {"alpha", 1.0}}},
      {"mse", {}}};
  for (const auto& [op, attrs] : losses) {
    for (const size_t inputs : {size_t{2}, size_t{3}}) {
      std::string name = op;
      for (const auto& [key, value] : attrs) {
        name += fmt::format(", {} {}", key, std::get<double>(value));
      }
      OpCase& c = make.Add(name + (inputs == 3 ? ", weighted" : ""), op, attrs,
                           std::vector<SymShape>(inputs, column));
      for (double& label : c.inputs[1].values) label = label > 0 ? 1 : 0;
      for (size_t i = 1; i < inputs; ++i) c.inputs[i].smooth = false;
    }
  }
}

void AddNegatives(CaseMaker& make) {
  for (const char* op : {"bpr", "sampled_softmax"}) {
    for (const int64_t negatives : {1, 7}) {
      for (const bool weighted : {false, true}) {
        std::vector<SymShape> shapes = {{Batch(), Const(1 + negatives)}};
        if (weighted) shapes.push_back({Batch(), Const(1)});
        OpCase& c = make.Add(
            fmt::format("{} of {} negatives{}", op, negatives, weighted ? ", weighted" : ""), op,
            {}, shapes);
        if (weighted) c.inputs[1].smooth = false;
      }
    }
  }
}

void AddCrossEntropies(CaseMaker& make) {
  for (const int64_t classes : {2, 41}) {
    for (const bool weighted : {false, true}) {
      std::vector<SymShape> shapes = {{Batch(), Const(classes)}, {Batch(), Const(1)}};
      if (weighted) shapes.push_back(shapes[1]);
      OpCase& c = make.Add(fmt::format("softmax_cross_entropy of {} classes{}", classes,
                                       weighted ? ", weighted" : ""),
                           "softmax_cross_entropy", {}, shapes);
      for (double& label : c.inputs[1].values) {
        label = std::fmod(std::floor(std::fabs(label) * 1000), static_cast<double>(classes));
      }
      for (size_t i = 1; i < shapes.size(); ++i) c.inputs[i].smooth = false;
    }
  }
}

void AddPicks(CaseMaker& make) {
  for (const int64_t width : {1, 37}) {
    OpCase& c = make.Add(fmt::format("pick of {}", width), "pick", {},
                         {{Batch(), Const(3), Const(width)}, {Batch(), Const(3), Const(1)}});
    for (double& at : c.inputs[1].values) {
      at = std::fmod(std::floor(std::fabs(at) * 1000), static_cast<double>(width));
    }
    c.inputs[1].smooth = false;
  }
  make.Add("sample_mean", "sample_mean", {}, {{Batch(), Const(1)}});
}

struct InBatchCase {
  const char* name;
  bool label = false, weight = false, log_q = false, key = false;
};

void AddInBatch(CaseMaker& make, const InBatchCase& of) {
  const SymShape vectors = {Batch(), Const(5)}, column = {Batch(), Const(1)};
  OpCase& c = make.Add(std::string("in_batch_softmax") + of.name, "in_batch_softmax",
                       {{"temperature", 0.5},
                        {"label", of.label},
                        {"weight", of.weight},
                        {"log_q", of.log_q},
                        {"key", of.key}},
                       {vectors, vectors});
  for (const bool there : {of.label, of.weight, of.log_q}) {
    if (!there) continue;
    c.inputs.push_back(Floats(c, column, make.NextStream()));
    c.inputs.back().smooth = false;
  }
  if (of.label) {
    for (double& label : c.inputs[2].values) label = label > 0 ? 1 : 0;
  }
  if (!of.key) return;
  // Only four different keys, so that many samples have equal ones.
  CaseInput key = Floats(c, {Batch(), Const(2)}, make.NextStream());
  for (double& half : key.values) half = std::fmod(std::floor(std::fabs(half) * 1000), 2);
  key.index = true, key.smooth = false;
  c.inputs.push_back(std::move(key));
}

}  // namespace

void AddLossCases(CaseMaker& make) {
  AddColumnLosses(make);
  AddNegatives(make);
  AddCrossEntropies(make);
  AddPicks(make);
  AddInBatch(make, {.name = ""});
  AddInBatch(make, {.name = ", key", .key = true});
  AddInBatch(make, {.name = ", log_q", .log_q = true});
  AddInBatch(make, {.name = ", all", .label = true, .weight = true, .log_q = true, .key = true});
}

}  // namespace dt::test
