#include "worker/memory/joined_columns.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::worker {
namespace {

// Copies positions [first, first + part.width) of columns that lie side by side. numbers(c): those
// of column c for all samples, `length(c)` each; empty: they are all 1.
template <class T, class Numbers, class Length>
void* Join(const InputSpec& spec, const InputPart& part, AlignedBuffer& memory,
           const Numbers& numbers, const Length& length) {
  const auto count = static_cast<size_t>(part.samples.size());
  const auto skip = static_cast<size_t>(part.samples.begin);
  auto* const out = static_cast<T*>(memory.Reserve(count * part.width * sizeof(T)));
  const size_t first = spec.first, end = first + part.width;
  size_t before = 0;  // Positions of the columns so far.
  for (const uint32_t c : spec.columns) {
    const size_t each = length(c), next = before + each;
    const size_t from = std::clamp(first, before, next), to = std::clamp(end, before, next);
    const auto values = numbers(c);
    for (size_t b = 0; b < count && from < to; ++b) {
      T* const row = out + b * part.width + (from - first);
      if (values.empty()) {
        std::fill_n(row, to - from, T(1));
        continue;
      }
      const auto* const of = values.data() + (skip + b) * each + (from - before);
      for (size_t i = 0; i < to - from; ++i) row[i] = static_cast<T>(of[i]);
    }
    before = next;
  }
  DT_CHECK(before >= end);
  return out;
}

}  // namespace

void* JoinColumns(const InputSpec& spec, const InputPart& part, const Batch& batch,
                  AlignedBuffer& memory) {
  DT_CHECK(batch.samples > 0);
  const auto length = [&](uint32_t c) { return batch.WithAll(c).keys.size() / batch.samples; };
  if (spec.kind == InputKind::kIds) {
    const auto ids = [&](uint32_t c) { return std::span(batch.WithAll(c).keys); };
    return Join<uint32_t>(spec, part, memory, ids, length);
  }
  if (spec.kind == InputKind::kIdWeights) {
    const auto weights = [&](uint32_t c) { return std::span(batch.WithAll(c).weights); };
    return Join<float>(spec, part, memory, weights, length);
  }
  const auto floats = [&](uint32_t c) { return std::span(batch.columns[c].floats); };
  const auto width = [&](uint32_t c) { return batch.columns[c].floats.size() / batch.samples; };
  return Join<float>(spec, part, memory, floats, width);
}

}  // namespace dt::worker
