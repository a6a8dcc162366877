#include <cmath>

#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

std::vector<Numbers> BatchMatmul(const OpCase& c) {
  const Tensor a = In(c, 0), b = In(c, 1);
  const bool ta = Flag(c, "transpose_a"), tb = Flag(c, "transpose_b");
  const int64_t inner = a.dim(a.shape.size() - (ta ? 2 : 1));
  return {ForEach(OutShape(c), [&](const Index& i) {
    const int64_t row = i[i.size() - 2], col = i.back();
    Index at_a = i, at_b = i;
    double sum = 0;
    for (int64_t k = 0; k < inner; ++k) {
      at_a[i.size() - 2] = ta ? k : row;
      at_a.back() = ta ? row : k;
      at_b[i.size() - 2] = tb ? col : k;
      at_b.back() = tb ? k : col;
      sum += a.at(at_a) * b.at(at_b);
    }
    return sum;
  })};
}

std::vector<Numbers> Outer(const OpCase& c) {
  const Tensor x = In(c, 0), y = In(c, 1);
  const int64_t width = y.shape.back();
  return {ForEach(OutShape(c), [&](const Index& i) {
    Index p = i, q = i;
    p.back() = i.back() / width;
    q.back() = i.back() % width;
    return x.at(p) * y.at(q);
  })};
}

std::vector<Numbers> CinLayer(const OpCase& c) {
  const Tensor x = In(c, 0), y = In(c, 1), w = In(c, 2);
  return {ForEach(OutShape(c), [&](const Index& i) {
    Index p = i, q = i;
    double sum = 0;
    for (p.back() = 0; p.back() < x.shape.back(); ++p.back()) {
      for (q.back() = 0; q.back() < y.shape.back(); ++q.back()) {
        sum += x.at(p) * y.at(q) * w.at({p.back() * y.shape.back() + q.back(), i.back()});
      }
    }
    return sum;
  })};
}

// Exponentials are taken relative to the element itself, which is accurate for large numbers.
std::vector<Numbers> Softmax(const OpCase& c, bool masked) {
  const Tensor x = In(c, 0);
  const double scale = FloatAttr(c.attrs, "scale", 1);
  const Tensor mask = masked ? In(c, 1) : Tensor{};
  const auto keeps = [&](const Index& i) { return !masked || mask.at(i) != 0; };
  return {ForEach(x.shape, [&](const Index& i) {
    if (!keeps(i)) return 0.0;
    Index other = i;
    double sum = 0;
    for (other.back() = 0; other.back() < x.shape.back(); ++other.back()) {
      if (keeps(other)) sum += std::exp(scale * (x.at(other) - x.at(i)));
    }
    return 1 / sum;
  })};
}

// Returns f(element, the elements of its row) for every element.
std::vector<Numbers> OfRows(const OpCase& c,
                            const std::function<double(const Index&, const Numbers&)>& f) {
  const Tensor x = In(c, 0);
  return {ForEach(x.shape, [&](const Index& i) {
    Index at = i;
    Numbers row;
    for (at.back() = 0; at.back() < x.shape.back(); ++at.back()) row.push_back(x.at(at));
    return f(i, row);
  })};
}

std::vector<Numbers> LayerNorm(const OpCase& c) {
  const Tensor gamma = In(c, 1), beta = In(c, 2);
  const double epsilon = FloatAttr(c.attrs, "epsilon", 1e-5);
  return OfRows(c, [&](const Index& i, const Numbers& row) {
    const auto n = static_cast<double>(row.size());
    double mean = 0, variance = 0;
    for (const double x : row) mean += x / n;
    for (const double x : row) variance += (x - mean) * (x - mean) / n;
    const double x = row[static_cast<size_t>(i.back())];
    return (x - mean) / std::sqrt(variance + epsilon) * gamma.at(i) + beta.at(i);
  });
}

std::vector<Numbers> L2Normalize(const OpCase& c) {
  const double epsilon = FloatAttr(c.attrs, "epsilon", 1e-12);
  return OfRows(c, [&](const Index& i, const Numbers& row) {
    double squares = 0;
    for (const double x : row) squares += x * x;
    return row[static_cast<size_t>(i.back())] / std::max(std::sqrt(squares), epsilon);
  });
}

// Converts [B, F, H d] to [B, H, F, d] (`split`), or back.
std::vector<Numbers> Heads(const OpCase& c, bool split) {
  const Tensor x = In(c, 0);
  const int64_t dim = split ? x.dim(2) / IntAttr(c.attrs, "heads", 1) : x.dim(3);
  return {ForEach(OutShape(c), [&](const Index& i) {
    return split ? x.at({i[0], i[2], i[1] * dim + i[3]})
                 : x.at({i[0], i[2] / dim, i[1], i[2] % dim});
  })};
}

}  // namespace

std::vector<Numbers> AttentionDefinition(const OpCase& c) {
  if (c.op == "batch_matmul") return BatchMatmul(c);
  if (c.op == "outer") return Outer(c);
  if (c.op == "cin_layer") return CinLayer(c);
  if (c.op == "softmax" || c.op == "masked_softmax") return Softmax(c, c.op == "masked_softmax");
  if (c.op == "layer_norm") return LayerNorm(c);
  if (c.op == "l2_normalize") return L2Normalize(c);
  if (c.op == "split_heads" || c.op == "merge_heads") return Heads(c, c.op == "split_heads");
  return {};
}

}  // namespace dt::test
