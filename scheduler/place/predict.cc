#include "scheduler/place/predict.h"

#include <algorithm>

#include "common/base/check.h"

namespace dt::scheduler {
namespace {

constexpr uint32_t kNobody = ~uint32_t{0};

}  // namespace

ReaderCounts CountReaders(const Model& model, const Places& places) {
  ReaderCounts counts(model.value_count());
  for (uint32_t v = 0; v < model.value_count(); ++v) {
    for (const uint32_t reader : model.readers(v)) ++counts[v][places[reader]];
  }
  return counts;
}

MemoryMeter::MemoryMeter(const Model& model) : model_(model), ends_(model.item_count()) {}

uint32_t MemoryMeter::LastReader(const Places& places, uint32_t v, uint8_t place) const {
  const std::span<const uint32_t> readers = model_.readers(v);
  for (size_t r = readers.size(); r-- > 0;) {
    if (places[readers[r]] == place) return readers[r];
  }
  return kNobody;
}

void MemoryMeter::Measure(const Places& places, Prediction& out) {
  out.kept_bytes = out.peak_bytes = {};
  out.peak_item = {};
  std::ranges::fill(ends_, PerPlace<double>{});
  PerPlace<double> alive = {};
  for (uint32_t i = 0; i < model_.item_count(); ++i) {
    const uint8_t place = places[i], other = 1 - place;
    out.kept_bytes[place] += model_.problem().items[i].memory[place];
    for (uint32_t v = model_.first_value(i); v < model_.first_value(i + 1); ++v) {
      const double bytes = model_.value(v).bytes;
      const uint32_t here = LastReader(places, v, place), there = LastReader(places, v, other);
      alive[place] += bytes;
      ends_[here == kNobody ? i : here][place] += bytes;
      if (there == kNobody) continue;
      alive[other] += bytes;
      ends_[there][other] += bytes;
    }
    for (uint8_t p = 0; p < kPlaces; ++p) {
      if (alive[p] > out.peak_bytes[p]) {
        out.peak_bytes[p] = alive[p];
        out.peak_item[p] = i;
      }
      alive[p] -= ends_[i][p];
    }
  }
  out.missing_bytes = 0;
  for (uint8_t p = 0; p < kPlaces; ++p) {
    out.missing_bytes += std::max(0.0, out.memory(p) - model_.problem().memory_limit[p]);
  }
}

Prediction Predict(const Model& model, const Places& places) {
  DT_CHECK(places.size() == model.item_count());
  const ReaderCounts readers = CountReaders(model, places);
  Arrivals arrivals(model.value_count());
  const StepRun run{model, places, readers, arrivals};
  StepClocks clocks;
  Prediction out;
  for (uint32_t i = 0; i < model.item_count(); ++i) {
    const uint8_t place = places[i];
    out.seconds = std::max(out.seconds, run.RunItem(i, clocks));
    out.computing[place] += model.duration(i, place);
    for (uint32_t v = model.first_value(i); v < model.first_value(i + 1); ++v) {
      if (readers[v][1 - place] == 0) continue;
      out.copying[place] += model.value(v).copy_seconds[place];
      out.copied_bytes[place] += model.value(v).bytes;
    }
  }
  MemoryMeter(model).Measure(places, out);
  return out;
}

}  // namespace dt::scheduler
