#include "worker/memory/parameters.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/arrays/array_reader.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/text.h"
#include "common/dense/dense_file.h"
#include "common/graph/initial_values.h"

namespace dt::worker {

namespace {

std::string TextOf(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Status Differs(const std::string& folder, std::string_view how) {
  return WithHint(
      WithWhere(Invalid("the checkpoint is of another model: {}", how), DensePath(folder, 0)),
      "resume with the job file it was written with, or start anew");
}

// What a worker's arrays become, until all of it has been read.
class Loaded {
 public:
  // `wanted` by array. `alone`: the files have these arrays, and no others.
  Loaded(const std::vector<Parameters::Array>& arrays, const std::string& folder,
         std::vector<bool> wanted, bool alone)
      : arrays_(arrays),
        folder_(folder),
        wanted_(std::move(wanted)),
        alone_(alone),
        values_(arrays.size()) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      by_name_[arrays[i].name] = i;
      missing_.push_back(arrays[i].values.size());
      if (wanted_[i]) values_[i].resize(arrays[i].values.size());
    }
  }

  Status Take(const DensePart& part) {
    const auto found = by_name_.find(part.name);
    saved_.insert(std::string(part.name));
    if (found == by_name_.end()) return OkStatus();  // Reported at the end.
    const Parameters::Array& own = arrays_[found->second];
    if (!wanted_[found->second]) return OkStatus();
    if (part.whole != own.whole) {
      return Differs(folder_, fmt::format("{} has shape {} there and {} here", own.name,
                                          TextOf(part.whole), TextOf(own.whole)));
    }
    const DenseBox to{own.first, own.shape};
    const size_t copied = CopyCommon(part, to, values_[found->second]);
    size_t& missing = missing_[found->second];
    if (copied > missing) {
      return WithWhere(
          DataLoss("elements of {} are in several files of dense parameters", own.name), folder_);
    }
    missing -= copied;
    return OkStatus();
  }

  Status End() const {
    if (alone_ && saved_.size() != arrays_.size()) {
      return Differs(folder_,
                     fmt::format("it has {} dense arrays, not {}", saved_.size(), arrays_.size()));
    }
    for (const auto& [name, i] : by_name_) {
      if (!wanted_[i] || saved_.contains(name)) continue;
      if (!alone_) return Differs(folder_, fmt::format("it has no {}", name));
      const auto other = std::ranges::find_if(
          saved_, [&](const std::string& saved) { return !by_name_.contains(saved); });
      return Differs(folder_, fmt::format("it has {} where this job has {}", *other, name));
    }
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (!wanted_[i] || missing_[i] == 0) continue;
      return WithWhere(DataLoss("the files of dense parameters lack {} elements of {}", missing_[i],
                                arrays_[i].name),
                       folder_);
    }
    return OkStatus();
  }

  void Put(std::vector<Parameters::Array>& arrays) const {
    for (size_t i = 0; i < arrays.size(); ++i) {
      // Copied in place: kernels hold no pointer between steps, but views do.
      if (wanted_[i]) std::ranges::copy(values_[i], arrays[i].values.begin());
    }
  }

 private:
  const std::vector<Parameters::Array>& arrays_;
  const std::string& folder_;
  const std::vector<bool> wanted_;
  const bool alone_;
  std::map<std::string, size_t, std::less<>> by_name_;
  std::set<std::string> saved_;
  std::vector<size_t> missing_;  // By array: elements not read yet.
  std::vector<std::vector<float>> values_;
};

}  // namespace

Parameters::Parameters(const Plan& plan, const TeamPlace& place)
    : position_(plan.position), devices_(plan.devices), place_(place) {
  const Graph& graph = plan.graph;
  std::map<SymbolIndex, Range> rows_of;
  for (const PartSpec& part : graph.parts) {
    const std::vector<uint32_t>& group = graph.groups[part.group].members;
    const auto members = static_cast<uint32_t>(group.size());
    const auto member = static_cast<uint32_t>(std::ranges::find(group, position_) - group.begin());
    const uint32_t number = place_.team * members + member;
    const Sharers sharers = SharersOf(number, members * place_.teams, plan.sharers);
    own_rows_.push_back(
        EvenPart({0, graph.value(part.of).shape[0].times}, sharers.count, number - sharers.first));
    copies_.push_back(sharers.first > 0);
    rows_of[graph.value(part.value).shape[0].symbol] = own_rows_.back();
  }
  for (const ParameterSpec& spec : graph.parameters) {
    const Value& value = graph.value(spec.value);
    DT_CHECK_MSG(value.dtype == DType::kF32, "parameter {} is not f32", value.name);
    Array& array = arrays_.emplace_back();
    array.name = value.name;
    array.value = spec.value;
    for (const Dim& dim : value.shape) array.shape.push_back(dim.times);
    array.optimizer_state = spec.state_of != kNone;
    array.of_team = spec.copy;
    array.copy = spec.copy || place_.team > 0;
    const SymbolIndex symbol = value.shape.empty() ? kConstant : value.shape[0].symbol;
    if (symbol == kConstant) {
      array.values = InitialValues(plan.seed, value, spec);
      array.whole = spec.whole.empty() ? array.shape : spec.whole;
      array.first = spec.whole.empty() ? Shape(array.shape.size(), 0) : spec.first;
    } else {
      SetOwned(spec, rows_of.at(symbol), graph, array);
    }
  }
}

// State of own rows, whose first value is a constant.
void Parameters::SetOwned(const ParameterSpec& spec, const Range& rows, const Graph& graph,
                          Array& array) const {
  const SymbolIndex symbol = graph.value(spec.value).shape[0].symbol;
  const auto part = std::ranges::find_if(graph.parts, [&](const PartSpec& p) {
    return graph.value(p.value).shape[0].symbol == symbol;
  });
  array.owned = true;
  array.copy = copies_[static_cast<size_t>(part - graph.parts.begin())];
  array.shape[0] = graph.value(part->of).shape[0].times;
  array.whole = spec.whole.empty() ? array.shape : spec.whole;
  array.first = spec.whole.empty() ? Shape(array.shape.size(), 0) : spec.first;
  array.first[0] += rows.begin;
  array.shape[0] = rows.size();
  array.values.assign(static_cast<size_t>(ElementCount(array.shape)), spec.init.value);
}

uint64_t Parameters::bytes() const {
  uint64_t bytes = 0;
  for (const Array& array : arrays_) bytes += array.values.size() * sizeof(float);
  return bytes;
}

std::vector<DenseSum> Parameters::Sums() const {
  std::vector<DenseSum> sums = {SumOf(false)};
  if (!own_rows_.empty()) sums.push_back(SumOf(true));
  return sums;
}

DenseSum Parameters::SumOf(bool owned) const {
  DenseSum sum{.part = owned ? devices_ + rank() : position_};
  for (const Array& array : arrays_) {
    // Teams are compared with one another, so copies of another team count.
    if (array.owned != owned || (owned ? array.copy : array.of_team)) continue;
    uint64_t key = HashString(array.name);
    for (const int64_t dim : array.whole) key = MixBits(key ^ static_cast<uint64_t>(dim)) + 1;
    size_t at = 0;
    ForEachRow({array.first, array.shape}, array.whole, [&](int64_t first, int64_t length) {
      for (int64_t i = 0; i < length; ++i, ++at) {
        const uint64_t bits = std::bit_cast<uint32_t>(array.values[at]);
        const uint64_t low = MixBits(key ^ MixBits(static_cast<uint64_t>(first + i) << 32 ^ bits));
        sum.low += low;
        sum.high += MixBits(low ^ (bits << 32 | (static_cast<uint64_t>(first + i) >> 32)));
      }
    });
  }
  return sum;
}

std::string Parameters::Checksum() const {
  const DenseSum sum = SumOf(false);
  return HexOf(sum.high) + HexOf(sum.low);
}

Result<CheckpointFile> Parameters::Save(const std::string& folder) const {
  DT_CHECK(saves());
  std::vector<const Array*> arrays;
  for (const Array& array : arrays_) {
    if (!array.copy && (!array.values.empty() || ElementCount(array.whole) == 0)) {
      arrays.push_back(&array);
    }
  }
  std::ranges::sort(arrays, {}, [](const Array* a) { return std::string_view(a->name); });
  DenseWriter writer(own_rows_.empty() ? devices_ : devices_ * place_.teams, arrays.size());
  for (const Array* array : arrays) {
    writer.Add({.name = array->name,
                .whole = array->whole,
                .box = {array->first, array->shape},
                .values = std::as_bytes(std::span(array->values))});
  }
  return writer.Write(folder, rank());
}

Status Parameters::Load(const std::string& folder) { return Load(folder, Wanted::kAll); }
Status Parameters::LoadWithoutState(const std::string& folder) {
  return Load(folder, Wanted::kWithoutState);
}
Status Parameters::LoadParts(const std::string& folder, const TakenParts& parts) {
  if (!parts.arrays.empty()) DT_TRY_STATUS(Load(folder, Wanted::kListed, parts.arrays));
  return parts.of_file.empty() ? OkStatus() : LoadFile(parts.file, parts.of_file);
}

Status Parameters::LoadFile(const std::string& path, std::span<const std::string> names) {
  DT_TRY(const ArrayReader file, ArrayReader::Open(path));
  for (Array& own : arrays_) {
    if (std::ranges::find(names, own.name) == names.end()) continue;
    const ArrayReader::Array* const array = DenseArrayIn(file, own.name);
    const bool fits = array != nullptr && std::ranges::equal(array->shape, own.whole);
    if (!fits) return WithWhere(Invalid("it has no {} of this job's shape", own.name), path);
    std::vector<float> whole(array->elements());
    DT_TRY_STATUS(file.ReadFloats(*array, 0, whole));
    CopyCommon({.name = own.name,
                .whole = own.whole,
                .box = {Shape(own.whole.size(), 0), own.whole},
                .values = std::as_bytes(std::span(whole))},
               {own.first, own.shape}, own.values);
  }
  return OkStatus();
}

Status Parameters::Load(const std::string& folder, Wanted wanted,
                        std::span<const std::string> listed) {
  std::vector<bool> these;
  for (const Array& array : arrays_) {
    const bool is_listed = std::ranges::find(listed, array.name) != listed.end();
    these.push_back(wanted == Wanted::kListed ? is_listed
                                              : wanted == Wanted::kAll || !array.optimizer_state);
  }
  Loaded loaded(arrays_, folder, std::move(these), wanted == Wanted::kAll);
  DT_TRY_STATUS(ReadDenseParts(folder, [&](const DensePart& part) { return loaded.Take(part); }));
  DT_TRY_STATUS(loaded.End());
  loaded.Put(arrays_);
  return OkStatus();
}

}  // namespace dt::worker
