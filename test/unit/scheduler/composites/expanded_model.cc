#include "test/unit/scheduler/composites/expanded_model.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "scheduler/passes/frontend/frontend.h"

namespace dt::test {
namespace {

Matrix AsMatrix(const HostTensor& tensor, size_t first, Shape shape) {
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  DT_CHECK(shape.size() == 2);
  Matrix matrix;
  for (int64_t r = 0; r < shape[0]; ++r) {
    std::vector<double>& row = matrix.emplace_back();
    for (int64_t c = 0; c < shape[1]; ++c) row.push_back(tensor.at(first++));
  }
  return matrix;
}

}  // namespace

Matrix Times(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size(), 0.0));
  for (size_t i = 0; i < c.size(); ++i) {
    DT_CHECK(a[i].size() == b.size());
    for (size_t j = 0; j < c[i].size(); ++j) {
      for (size_t k = 0; k < b.size(); ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

Matrix Plus(Matrix a, const Matrix& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) a[i][j] += b[b.size() == 1 ? 0 : i][j];
  }
  return a;
}

Matrix Turned(const Matrix& a) {
  Matrix turned(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) turned[j][i] = a[i][j];
  }
  return turned;
}

ExpandedModel::ExpandedModel(const std::vector<NodeConfig>& nodes) {
  const JobConfig job = TinyJob(nodes);
  const scheduler::PlanRequest request{job, TinyColumns(), 1};
  Result<Graph> expanded = scheduler::Expand({}, request);
  DT_CHECK_MSG(expanded.ok(), "{}", ToText(expanded.status()));
  graph_ = InFloat64(*std::move(expanded));
  parameters_ = InFloat64(FirstParameters(graph_, 1));
  double number = 0;
  for (auto& [value, tensor] : parameters_) {
    for (size_t i = 0; i < tensor.size(); ++i) tensor.set(i, std::sin(number += 1.3));
  }
  SliceData slice = RandomSlice(graph_, kSamples, 2);
  slice.inputs = InFloat64(slice.inputs);
  TaskPool pool(1);
  RunInfo run;
  run.step_samples = kSamples;
  values_ = Interpreter(graph_, pool).RunSlice(slice, parameters_, run);
}

ValueIndex ExpandedModel::Named(const std::string& name) const {
  const auto found = std::ranges::find(graph_.values, name, &Value::name);
  DT_CHECK_MSG(found != graph_.values.end(), "no value \"{}\"", name);
  return static_cast<ValueIndex>(found - graph_.values.begin());
}

Matrix ExpandedModel::Sample(const std::string& value, size_t sample) const {
  const HostTensor& tensor = values_.at(Named(value));
  const Shape shape(tensor.shape.begin() + 1, tensor.shape.end());
  return AsMatrix(tensor, sample * static_cast<size_t>(ElementCount(shape)), shape);
}

Matrix ExpandedModel::Parameter(const std::string& name) const {
  const HostTensor& tensor = parameters_.at(Named(name));
  if (tensor.shape.size() < 3) return AsMatrix(tensor, 0, tensor.shape);
  return AsMatrix(tensor, 0,
                  {ElementCount(tensor.shape) / tensor.shape.back(), tensor.shape.back()});
}

}  // namespace dt::test
