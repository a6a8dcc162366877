// A small model that is expanded and run once in float64, and matrices to compute the expected
// values.
#pragma once

#include <string>
#include <vector>

#include "test/support/interpreter.h"
#include "test/support/tiny_model.h"

namespace dt::test {

using Matrix = std::vector<std::vector<double>>;
Matrix Times(const Matrix& a, const Matrix& b);
Matrix Plus(Matrix a, const Matrix& b);
Matrix Turned(const Matrix& a);

class ExpandedModel {
 public:
  // The nodes over TinyColumns; the last is the logit. Parameters have values of both signs.
  explicit ExpandedModel(const std::vector<NodeConfig>& nodes);

  static constexpr size_t kSamples = 6;
  const Graph& graph() const { return graph_; }
  // One sample of a value of shape [B, rows, cols], or of shape [B, cols] as a single row.
  // REQUIRES: a value has this name.
  Matrix Sample(const std::string& value, size_t sample) const;
  // A parameter [rows, cols]; [cols] as a single row; [n, rows, cols] as n matrices one below the
  // other.
  Matrix Parameter(const std::string& name) const;

 private:
  ValueIndex Named(const std::string& name) const;

  Graph graph_;
  Tensors values_, parameters_;
};

}  // namespace dt::test
