#include <cmath>
#include <functional>
#include <numeric>

#include "common/base/hash.h"
#include "common/base/philox.h"
#include "test/ops/cases/case_maker.h"

namespace dt::test {
namespace {

std::vector<Numbers> Matmul(const OpCase& c) {
  const auto matrix = [&](size_t i) {
    Tensor t = In(c, i);
    const int64_t cols = t.shape.back();
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < t.shape.size(); ++d) rows *= t.shape[d];
    t.shape = {rows, cols};
    return t;
  };
  const Tensor a = matrix(0), b = matrix(1);
  const bool ta = Flag(c, "transpose_a"), tb = Flag(c, "transpose_b");
  const int64_t m = a.dim(ta ? 1 : 0), k = a.dim(ta ? 0 : 1), n = b.dim(tb ? 0 : 1);
  return {ForEach({m, n}, [&](const Index& i) {
    double sum = 0;
    for (int64_t p = 0; p < k; ++p) {
      const size_t at_a = static_cast<size_t>(ta ? p * m + i[0] : i[0] * k + p);
      const size_t at_b = static_cast<size_t>(tb ? i[1] * k + p : p * n + i[1]);
      sum += a.values[at_a] * b.values[at_b];
    }
    return sum;
  })};
}

// Layers are defined by their parts. This is the case of the matrix product alone; bias, activation
// and gradient sums follow it.
OpCase ProductOf(const OpCase& c, bool transposed) {
  OpCase product = c;
  product.attrs = {{"transpose_b", transposed}};
  product.inputs.resize(2);
  return product;
}

std::vector<Numbers> DenseLayer(const OpCase& c) {
  const bool relu = TextAttr(c.attrs, "activation", "none") == "relu";
  std::vector<Numbers> out = Matmul(ProductOf(c, false));
  const Numbers& bias = c.inputs[2].values;
  for (size_t i = 0; i < out[0].size(); ++i) {
    const double z = out[0][i] + bias[i % bias.size()];
    out[0][i] = relu ? std::max(z, 0.0) : z;
  }
  return out;
}

// The gradient dy of y, which a ReLU made and with `dropout` a dropout after it.
std::vector<Numbers> ReluBiasGrad(const OpCase& c, const Tensor& y, Numbers dy) {
  const auto cols = static_cast<size_t>(y.shape.back());
  const double kept = 1 - FloatAttr(c.attrs, "dropout", 0);
  Numbers sums(cols, 0.0);
  for (size_t i = 0; i < dy.size(); ++i) {
    dy[i] = y.values[i] <= 0 ? 0 : dy[i] / kept;
    sums[i % cols] += dy[i];
  }
  return {std::move(dy), std::move(sums)};
}

std::vector<Numbers> DenseLayerBack(const OpCase& c) {
  return ReluBiasGrad(c, In(c, 2), Matmul(ProductOf(c, true))[0]);
}

std::vector<Numbers> Binary(const OpCase& c, double (*f)(double, double)) {
  const Tensor a = In(c, 0), b = In(c, 1);
  return {ForEach(OutShape(c), [&](const Index& i) { return f(a.at(i), b.at(i)); })};
}

std::vector<Numbers> Unary(const OpCase& c, const std::function<double(double)>& f) {
  Numbers out = c.inputs[0].values;
  for (double& x : out) x = f(x);
  return {out};
}

std::vector<Numbers> Cast(const OpCase& c) {
  const bool narrow = TextAttr(c.attrs, "to", "") == "bf16";
  return Unary(c, [narrow](double x) { return narrow ? RoundedToBf16(x) : x; });
}

std::vector<Numbers> BatchNorm(const OpCase& c) {
  const Tensor x = In(c, 0);
  const int64_t n = x.dim(0), channels = x.dim(1);
  const double epsilon = FloatAttr(c.attrs, "epsilon", 1e-5);
  Numbers y(x.values.size()), means, vars, inverses;
  for (int64_t ch = 0; ch < channels; ++ch) {
    const auto at = static_cast<size_t>(ch);
    double mean = 0, var = 0;
    for (int64_t b = 0; b < n; ++b) mean += x.at({b, ch}) / static_cast<double>(n);
    for (int64_t b = 0; b < n; ++b)
      var += std::pow(x.at({b, ch}) - mean, 2) / static_cast<double>(n);
    if (!c.run.training) mean = c.inputs[3].values[at], var = c.inputs[4].values[at];
    const double inverse = 1 / std::sqrt(var + epsilon);
    for (int64_t b = 0; b < n; ++b) {
      y[static_cast<size_t>(b * channels + ch)] =
          (x.at({b, ch}) - mean) * inverse * c.inputs[1].values[at] + c.inputs[2].values[at];
    }
    means.push_back(mean), vars.push_back(var), inverses.push_back(inverse);
  }
  return {y, means, vars, inverses, {c.run.training ? static_cast<double>(n) : 0.0}};
}

// The mask that ops/norm/dropout_cpu.cc describes, from the scalar random generator.
Numbers Masked(const OpCase& c, Numbers out, double rate) {
  if (!c.run.training) return out;
  const uint64_t key = StreamKey(c.run.seed, HashString("dropout"), c.run.step, HashString("node"));
  const Shape shape = ShapeIn(c, c.inputs[0].shape);
  const size_t places = shape[0] == 0 ? 1 : out.size() / static_cast<size_t>(shape[0]);
  const std::vector<int64_t> first = IntsAttr(c.attrs, "first"), whole = IntsAttr(c.attrs, "whole");
  for (size_t i = 0; i < out.size(); ++i) {
    size_t place = i % places;
    if (!first.empty()) {  // The tensor has three dimensions.
      const auto row = static_cast<int64_t>(place) / shape[2] + first[1];
      place =
          static_cast<size_t>(row * whole[2] + static_cast<int64_t>(place) % shape[2] + first[2]);
    }
    const size_t in_group = place % 16;
    const PhiloxBlock block =
        Philox(key, c.run.first_sample + i / places, place / 16 * 4 + in_group % 8 / 2);
    const uint32_t bits = block[2 * (in_group / 8) + in_group % 2];
    out[i] = bits < static_cast<uint32_t>(rate * 0x1.0p32) ? 0 : out[i] / (1 - rate);
  }
  return out;
}

std::vector<Numbers> NormLayer(const OpCase& c) {
  std::vector<Numbers> outputs = BatchNorm(c);
  for (double& y : outputs[0]) y = std::max(y, 0.0);
  outputs[0] = Masked(c, std::move(outputs[0]), FloatAttr(c.attrs, "dropout", 0));
  return outputs;
}

std::vector<Numbers> NormLayerBack(const OpCase& c) {
  const Tensor x = In(c, 1);
  const int64_t channels = x.dim(1);
  const auto n = static_cast<double>(x.dim(0));
  const Numbers &gammas = c.inputs[2].values, &means = c.inputs[3].values;
  const Numbers& inverses = c.inputs[4].values;
  const Numbers dy = ReluBiasGrad(c, In(c, 5), c.inputs[0].values)[0];
  Numbers dx(dy.size()), dgamma(gammas.size()), dbeta(gammas.size()), sums(gammas.size());
  const auto normal = [&](size_t i, size_t ch) { return (x.values[i] - means[ch]) * inverses[ch]; };
  for (size_t i = 0; i < dy.size(); ++i) {
    const size_t ch = i % static_cast<size_t>(channels);
    dgamma[ch] += dy[i] * normal(i, ch);
    dbeta[ch] += dy[i];
  }
  for (size_t i = 0; i < dy.size(); ++i) {
    const size_t ch = i % static_cast<size_t>(channels);
    dx[i] = gammas[ch] * inverses[ch] * (dy[i] - (dbeta[ch] + normal(i, ch) * dgamma[ch]) / n);
    sums[ch] += dx[i];
  }
  return {dx, dgamma, dbeta, sums};
}

// Concatenates along `axis`; with `fields`, inputs of rank 2 first get a field dimension.
std::vector<Numbers> Join(const OpCase& c, bool fields) {
  std::vector<Tensor> parts;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    parts.push_back(In(c, i));
    Shape& shape = parts.back().shape;
    if (fields && shape.size() == 2) shape.insert(shape.begin() + 1, 1);
  }
  const int64_t written = fields ? 1 : IntAttr(c.attrs, "axis", -1);
  const auto axis =
      static_cast<size_t>(written < 0 ? written + std::ssize(parts[0].shape) : written);
  return {ForEach(OutShape(c), [&](Index i) {
    for (const Tensor& part : parts) {
      if (i[axis] < part.dim(axis)) return part.at(i);
      i[axis] -= part.dim(axis);
    }
    return std::nan("");
  })};
}

std::vector<Numbers> SliceOrPad(const OpCase& c) {
  const Tensor x = In(c, 0);
  const int64_t written = IntAttr(c.attrs, "axis", -1);
  const auto axis = static_cast<size_t>(written < 0 ? written + std::ssize(x.shape) : written);
  const int64_t shift = IntAttr(c.attrs, "begin", 0) - IntAttr(c.attrs, "before", 0);
  return {ForEach(OutShape(c), [&](Index i) {
    i[axis] += shift;
    return i[axis] < 0 || i[axis] >= x.dim(axis) ? 0.0 : x.at(i);
  })};
}

std::vector<Numbers> Transpose(const OpCase& c) {
  const Tensor x = In(c, 0);
  const std::vector<int64_t> perm = IntsAttr(c.attrs, "perm");
  return {ForEach(OutShape(c), [&](const Index& i) {
    Index from(i.size());
    for (size_t d = 0; d < i.size(); ++d) from[static_cast<size_t>(perm[d])] = i[d];
    return x.at(from);
  })};
}

// Adds each input element to the output element that it is reduced to. Dimensions of size 1 in
// `kept` are summed.
std::vector<Numbers> ReduceTo(const OpCase& c, const Shape& kept, bool mean) {
  const Tensor x = In(c, 0);
  Numbers out(static_cast<size_t>(ElementCount(kept)), 0.0);
  const double share =
      mean ? static_cast<double>(out.size()) / static_cast<double>(x.values.size()) : 1;
  ForEach(x.shape, [&](const Index& i) {
    int64_t flat = 0;
    const size_t skip = i.size() - kept.size();
    for (size_t d = 0; d < kept.size(); ++d) {
      flat = flat * kept[d] + (kept[d] == 1 ? 0 : i[skip + d]);
    }
    out[static_cast<size_t>(flat)] += x.at(i) * share;
    return 0.0;
  });
  return {out};
}

std::vector<Numbers> Reduce(const OpCase& c, bool mean) {
  Shape kept = ShapeIn(c, c.inputs[0].shape);
  Index axes = {0};
  if (const auto* one = std::get_if<int64_t>(&c.attrs.at("axis")))
    axes = {*one};
  else
    axes = IntsAttr(c.attrs, "axis");
  for (const int64_t axis : axes)
    kept[static_cast<size_t>(axis < 0 ? axis + std::ssize(kept) : axis)] = 1;
  return ReduceTo(c, kept, mean);
}

// The weighted sum of the rows at positions [begin, end), divided as the combiner requires.
double Combined(const OpCase& c, size_t begin, size_t end, size_t d) {
  const Tensor rows = In(c, 0);
  const bool weighted = Flag(c, "weighted");
  const std::string combiner = TextAttr(c.attrs, "combiner", "sum");
  double sum = 0, weights = 0, squares = 0;
  for (size_t i = begin; i < end; ++i) {
    const double weight = weighted ? c.inputs.back().values[i] : 1;
    sum += weight * rows.at({static_cast<int64_t>(c.inputs[1].values[i]), static_cast<int64_t>(d)});
    weights += weight;
    squares += weight * weight;
  }
  if (begin == end || combiner == "sum") return sum;
  return combiner == "mean" ? sum / weights : sum / std::sqrt(squares);
}

std::vector<Numbers> Bag(const OpCase& c) {
  const auto length = static_cast<size_t>(IntAttr(c.attrs, "length", 1));
  const bool ragged = Flag(c, "ragged");
  return {ForEach(OutShape(c), [&](const Index& i) {
    const auto b = static_cast<size_t>(i[0]);
    const auto end_of = [&](size_t s) { return static_cast<size_t>(c.inputs[4].values[s]); };
    const size_t begin = ragged ? (b == 0 ? 0 : end_of(b - 1)) : b * length;
    return Combined(c, begin, ragged ? end_of(b) : begin + length, static_cast<size_t>(i[1]));
  })};
}

std::vector<Numbers> GatherRows(const OpCase& c) {
  const auto length = static_cast<size_t>(IntAttr(c.attrs, "length", 1));
  return {ForEach(OutShape(c), [&](const Index& i) {
    const size_t at = static_cast<size_t>(i[0]) * length + static_cast<size_t>(i[1]);
    return Combined(c, at, at + 1, static_cast<size_t>(i[2]));
  })};
}

double PairDot(const Tensor& x, int64_t b, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t d = 0; d < x.dim(2); ++d) sum += x.at({b, i, d}) * x.at({b, j, d});
  return sum;
}

// Dot products of all pairs among the fields of all inputs, computed directly and not by the
// identity that the kernel uses.
// A field of one sample, in one of the inputs of dot.
struct DotField {
  size_t input;
  size_t at;  // Position of its first value.
};
std::vector<DotField> FieldsOf(std::span<const Tensor> inputs, int64_t sample) {
  std::vector<DotField> fields;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    const int64_t count = shape.size() == 2 ? 1 : shape[1];
    for (int64_t f = 0; f < count; ++f) {
      fields.push_back({i, static_cast<size_t>((sample * count + f) * shape.back())});
    }
  }
  return fields;
}

// The dot products of fields, which are all inputs but the last `others`, for each sample.
std::vector<Numbers> Dots(const OpCase& c, size_t others) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i + others < c.inputs.size(); ++i) inputs.push_back(In(c, i));
  std::vector<Numbers> samples;
  for (int64_t b = 0; b < inputs[0].dim(0); ++b) {
    Numbers& pairs = samples.emplace_back();
    const std::vector<DotField> fields = FieldsOf(inputs, b);
    for (size_t i = 0; i < fields.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const double* const x = &inputs[fields[i].input].values[fields[i].at];
        const double* const y = &inputs[fields[j].input].values[fields[j].at];
        pairs.push_back(std::inner_product(x, x + inputs[0].shape.back(), y, 0.0));
      }
    }
  }
  return samples;
}

std::vector<Numbers> Dot(const OpCase& c) {
  Numbers out;
  for (const Numbers& pairs : Dots(c, 0)) out.insert(out.end(), pairs.begin(), pairs.end());
  return {out};
}

std::vector<Numbers> ConcatDot(const OpCase& c) {
  const Tensor before = In(c, c.inputs.size() - 1);
  Numbers out;
  int64_t b = 0;
  for (const Numbers& pairs : Dots(c, 1)) {
    for (int64_t i = 0; i < before.dim(1); ++i) out.push_back(before.at({b, i}));
    out.insert(out.end(), pairs.begin(), pairs.end());
    ++b;
  }
  return {out};
}

std::vector<Numbers> ConcatDotGrad(const OpCase& c) {
  std::vector<Tensor> inputs;
  std::vector<Numbers> grads;
  for (size_t i = 0; i + 1 < c.inputs.size(); ++i) {
    inputs.push_back(In(c, i));
    grads.emplace_back(inputs[i].values.size(), 0.0);
  }
  const Tensor dy = In(c, inputs.size());
  const auto dim = static_cast<size_t>(inputs[0].shape.back());
  for (int64_t b = 0; b < dy.dim(0); ++b) {
    const std::vector<DotField> fields = FieldsOf(inputs, b);
    auto column = dy.dim(1) - std::ssize(fields) * (std::ssize(fields) - 1) / 2;
    for (size_t i = 0; i < fields.size(); ++i) {
      for (size_t j = 0; j < i; ++j, ++column) {
        const DotField &x = fields[i], &y = fields[j];
        for (size_t d = 0; d < dim; ++d) {
          grads[x.input][x.at + d] += dy.at({b, column}) * inputs[y.input].values[y.at + d];
          grads[y.input][y.at + d] += dy.at({b, column}) * inputs[x.input].values[x.at + d];
        }
      }
    }
  }
  return grads;
}

std::vector<Numbers> Fm(const OpCase& c) {
  const Tensor x = In(c, 0);
  Numbers out;
  for (int64_t b = 0; b < x.dim(0); ++b) {
    double sum = 0;
    for (int64_t i = 0; i < x.dim(1); ++i) {
      for (int64_t j = 0; j < i; ++j) {
        sum += PairDot(x, b, i, j);
      }
    }
    out.push_back(sum);
  }
  return {out};
}

std::vector<Numbers> CrossLayer(const OpCase& c) {
  const Tensor x0 = In(c, 0), x = In(c, 1), w = In(c, 2), bias = In(c, 3);
  return {ForEach(x0.shape, [&](const Index& i) {
    double s = 0;
    for (int64_t d = 0; d < x0.dim(1); ++d) s += x.at({i[0], d}) * w.at({d, 0});
    return x0.at(i) * s + bias.at({i[1]}) + x.at(i);
  })};
}

using Defined = std::function<std::vector<Numbers>(const OpCase&)>;
std::map<std::string, Defined> MakeUnary() {
  const auto unary = [](double (*f)(double)) {
    return [f](const OpCase& c) { return Unary(c, f); };
  };
  return {
      {"relu", unary([](double x) { return x > 0 ? x : 0; })},
      {"sigmoid", unary([](double x) { return 1 / (1 + std::exp(-x)); })},
      {"tanh", unary([](double x) { return std::tanh(x); })},
      {"gelu", unary([](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); })},
      {"exp", unary([](double x) { return std::exp(x); })},
      {"log", unary([](double x) { return std::log(x); })},
      {"sqrt", unary([](double x) { return std::sqrt(x); })},
      {"square", unary([](double x) { return x * x; })},
      {"neg", unary([](double x) { return -x; })},
      {"stop_gradient", unary([](double x) { return x; })},
      {"redistribute", unary([](double x) { return x; })},
      {"cast", Cast},
      {"reshape", unary([](double x) { return x; })},
      {"flatten", unary([](double x) { return x; })},
      {"scale", [](const OpCase& c) { return Unary(c, [](double x) { return -1.5 * x; }); }},
      {"add_const", [](const OpCase& c) { return Unary(c, [](double x) { return x + 0.25; }); }},
      {"clip",
       [](const OpCase& c) {
         const double low = FloatAttr(c.attrs, "min", -1e300);
         return Unary(c, [low](double x) { return std::min(0.75, std::max(low, x)); });
       }},
  };
}

std::map<std::string, Defined> MakeDefinitions() {
  std::map<std::string, Defined> all = MakeUnary();
  const auto binary = [](double (*f)(double, double)) {
    return [f](const OpCase& c) { return Binary(c, f); };
  };
  all["matmul"] = Matmul;
  all["dense_layer"] = DenseLayer;
  all["dense_layer_back"] = DenseLayerBack;
  all["relu_bias_grad"] = [](const OpCase& c) {
    return ReluBiasGrad(c, In(c, 0), c.inputs[1].values);
  };
  all["add"] = all["bias_add"] = binary([](double a, double b) { return a + b; });
  all["sub"] = binary([](double a, double b) { return a - b; });
  all["mul"] = binary([](double a, double b) { return a * b; });
  all["broadcast_to"] = binary([](double a, double) { return a; });
  all["batch_norm"] = BatchNorm;
  all["batch_norm_statistics"] = [](const OpCase& c) {
    Numbers inverse = c.inputs[4].values;
    for (double& deviation : inverse) deviation = 1 / deviation;
    return std::vector<Numbers>{c.inputs[2].values, c.inputs[3].values, inverse,
                                c.inputs[5].values};
  };
  all["in_training"] = [](const OpCase& c) {
    return std::vector<Numbers>{c.inputs[c.run.training ? 0 : 1].values};
  };
  all["batch_count"] = [](const OpCase& c) {
    const Shape shape = ShapeIn(c, c.inputs[0].shape);
    return std::vector<Numbers>{Numbers(6, static_cast<double>(shape[0] * shape[1]))};
  };
  all["dropout"] = [](const OpCase& c) {
    return std::vector<Numbers>{Masked(c, c.inputs[0].values, FloatAttr(c.attrs, "rate", 0.5))};
  };
  all["norm_layer"] = NormLayer;
  all["norm_layer_back"] = NormLayerBack;
  all["concat"] = [](const OpCase& c) { return Join(c, false); };
  all["stack"] = [](const OpCase& c) { return Join(c, true); };
  all["slice"] = all["pad"] = SliceOrPad;
  all["transpose"] = Transpose;
  all["fill"] = [](const OpCase&) { return std::vector<Numbers>{Numbers(6, 1.5)}; };
  all["reduce_sum"] = [](const OpCase& c) { return Reduce(c, false); };
  all["reduce_mean"] = [](const OpCase& c) { return Reduce(c, true); };
  all["reduce_to"] =
      all["reduce_batch"] = [](const OpCase& c) { return ReduceTo(c, OutShape(c), false); };
  all["gather_rows"] = GatherRows;
  all["bag"] = Bag;
  all["fm"] = Fm;
  all["dot"] = Dot;
  all["concat_dot"] = ConcatDot;
  all["concat_dot_grad"] = ConcatDotGrad;
  all["cross_layer"] = CrossLayer;
  return all;
}

}  // namespace

std::vector<Numbers> Definition(const OpCase& c) {
  for (const auto family : {AttentionDefinition, LossDefinition, RaggedDefinition, MoeDefinition}) {
    std::vector<Numbers> defined = family(c);
    if (!defined.empty()) return defined;
  }
  static const std::map<std::string, Defined> definitions = MakeDefinitions();
  const auto found = definitions.find(c.op);
  return found == definitions.end() ? std::vector<Numbers>() : found->second(c);
}

}  // namespace dt::test
