// Declarations shared by the files of cases (cases*.cc) and of definitions (definitions*.cc). A
// family with files of its own declares its two functions here, and CasesFor and Definition call
// them.
#pragma once

#include <functional>
#include <utility>

#include "test/ops/op_case.h"

namespace dt::test {

class CaseMaker {
 public:
  explicit CaseMaker(int64_t batch) : batch_(batch) {}

  // Adds a case whose inputs have these shapes and random values. The reference is valid until the
  // next Add.
  OpCase& Add(std::string name, std::string op, Attrs attrs, const std::vector<SymShape>& shapes) {
    OpCase c;
    c.name = std::move(name);
    c.op = std::move(op);
    c.attrs = std::move(attrs);
    c.sizes[kBatch] = batch_;
    c.run = {.seed = 3, .step = 2, .first_sample = 40, .step_samples = 7};
    for (const SymShape& shape : shapes) c.inputs.push_back(Floats(c, shape, NextStream()));
    cases.push_back(std::move(c));
    return cases.back();
  }
  int64_t batch() const { return batch_; }
  // Returns a stream of random numbers that no other input uses.
  uint64_t NextStream() { return ++stream_; }

  std::vector<OpCase> cases;

 private:
  const int64_t batch_;
  uint64_t stream_ = 0;
};

// Makes the first four inputs of a lookup: rows, random row positions, and the uses of each row
// (ends and order).
struct RowShape {
  int64_t rows = 0, dim = 0;
};
void AddLookup(CaseMaker& make, OpCase& c, SymShape index_shape, const RowShape& of);
// Returns the ends of lists of 0, 1, …, longest, 0, 1, … ids, and sets the size of the ids' symbol.
Numbers ListEnds(CaseMaker& make, OpCase& c, int64_t longest);

// Defined in cases_<family>.cc.
void AddAttentionCases(CaseMaker& make);
void AddLossCases(CaseMaker& make);
void AddRaggedCases(CaseMaker& make);
void AddMoeCases(CaseMaker& make);  // Defined in moe/moe_cases.cc, like MoeDefinition.
// Defined in definitions_<family>.cc. Each returns nothing for an operator of another family.
std::vector<Numbers> AttentionDefinition(const OpCase& c);
std::vector<Numbers> LossDefinition(const OpCase& c);
std::vector<Numbers> RaggedDefinition(const OpCase& c);
std::vector<Numbers> MoeDefinition(const OpCase& c);

// A tensor that is read by index; dimensions of size 1, and missing ones on the left, are
// broadcast.
using Index = std::vector<int64_t>;
struct Tensor {
  Shape shape;
  Numbers values;

  double at(const Index& index) const {
    int64_t flat = 0;
    const size_t skip = index.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      flat = flat * shape[d] + (shape[d] == 1 ? 0 : index[skip + d]);
    }
    return values[static_cast<size_t>(flat)];
  }
  int64_t dim(size_t d) const { return shape[d]; }
};

inline Tensor In(const OpCase& c, size_t i) {
  return {ShapeIn(c, c.inputs[i].shape), c.inputs[i].values};
}

// Returns f(index) for every index of `shape`, in order.
inline Numbers ForEach(const Shape& shape, const std::function<double(const Index&)>& f) {
  Numbers out;
  Index index(shape.size(), 0);
  for (int64_t n = ElementCount(shape); n > 0; --n) {
    out.push_back(f(index));
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

// The shape of output `i`.
inline Shape OutShape(const OpCase& c, size_t i = 0) {
  const Result<std::vector<Value>> inferred = InferCase(c);
  DT_CHECK_MSG(inferred.ok(), "{}: {}", c.name, ToText(inferred.status()));
  return ShapeIn(c, (*inferred)[i].shape);
}

inline bool Flag(const OpCase& c, const char* name) { return BoolAttr(c.attrs, name, false); }

}  // namespace dt::test
