#include "scheduler/query/query_json.h"

#include <algorithm>

#include <fmt/format.h>

namespace dt::scheduler {
namespace {

// Larger numbers make no layout, and would take much memory.
constexpr int64_t kDevicesMax = 4096;
constexpr int64_t kExtentMax = int64_t{1} << 40;
constexpr size_t kDimensionsMax = 16;

AxisIndex ReadAxis(const Json& json, const Layout& layout) {
  const int64_t from_right = ReadInt(json, "a map");
  const auto axes = std::ssize(layout.matrix);
  if (from_right < 0 || from_right >= axes) {
    throw QueryError(
        "map", fmt::format("a map names axis {}, and the device matrix has {}", from_right, axes));
  }
  return static_cast<AxisIndex>(axes - 1 - from_right);
}

AxisList ReadAxes(const Json& json, const Layout& layout) {
  AxisList axes;
  if (json.is_array()) {
    for (const Json& axis : json) axes.push_back(ReadAxis(axis, layout));
  } else if (ReadInt(json, "a map") != -1) {
    axes.push_back(ReadAxis(json, layout));
  }
  return axes;
}

CutDim ReadDim(const Json& json, const Layout& layout) {
  CutDim dim;
  if (json.is_object() && json.contains("factors")) {
    for (const Json& factor : Member(json, "factors")) {
      if (!factor.is_array() || factor.size() != 2) {
        throw QueryError("map", "a factor is [size, map]");
      }
      dim.push_back({.size = ReadInt(factor[0], "a factor"), .axes = ReadAxes(factor[1], layout)});
    }
    return dim;
  }
  const Json& map = json.is_object() ? Member(json, "map") : json;
  const AxisList axes = ReadAxes(map, layout);
  if (axes.empty()) return dim;
  dim.push_back({.axes = axes});
  if (json.is_object()) dim[0].parts = ReadInts(Member(json, "sizes"), "sizes");
  return dim;
}

int64_t FromRight(const Layout& layout, AxisIndex axis) {
  return std::ssize(layout.matrix) - 1 - int64_t{axis};
}

Json AxesJson(const Layout& layout, const AxisList& axes) {
  if (axes.empty()) return -1;
  if (axes.size() == 1) return FromRight(layout, axes[0]);
  Json list = Json::array();
  for (const AxisIndex axis : axes) list.push_back(FromRight(layout, axis));
  return list;
}

Json DimJson(const Layout& layout, const CutDim& dim) {
  if (dim.empty()) return -1;
  if (dim.size() == 1 && dim[0].parts.empty()) return AxesJson(layout, dim[0].axes);
  if (dim.size() == 1) return {{"map", AxesJson(layout, dim[0].axes)}, {"sizes", dim[0].parts}};
  Json factors = Json::array();
  for (const CutFactor& f : dim) {
    factors.push_back(Json::array({f.size, AxesJson(layout, f.axes)}));
  }
  return {{"factors", factors}};
}

DimParts ReadParts(const Json& json) {
  DimParts parts;
  const std::vector<int64_t> numbers = json.is_array()
                                           ? ReadInts(json, "a strategy")
                                           : std::vector<int64_t>{ReadInt(json, "a strategy")};
  for (const int64_t number : numbers) {
    if (number < 0 || number > kDevicesMax) {
      throw QueryError("parts", fmt::format("a dimension is cut into {} parts", number));
    }
    parts.push_back(static_cast<uint32_t>(number));
  }
  return parts;
}

Json BoxesJson(const Transfer& transfer) {
  Json boxes = Json::array();
  for (const BoxMove& move : transfer.moves) {
    Json offset = Json::array(), size = Json::array();
    for (const Range& range : move.box) {
      offset.push_back(range.begin);
      size.push_back(range.size());
    }
    boxes.push_back({{"from", move.from}, {"to", move.to}, {"offset", offset}, {"size", size}});
  }
  return boxes;
}

Json StepJson(const RedistributionStep& step) {
  using Kind = RedistributionKind;
  const Layout& layout = step.after;
  Json json = {{"kind", NameOf(step.kind)}};
  if (step.kind == Kind::kSplit || step.kind == Kind::kAllGather ||
      step.kind == Kind::kReduceScatter) {
    json["dim"] = step.dim;
  }
  if (step.kind == Kind::kAllToAll) {
    json["split_dim"] = step.dim;
    json["concat_dim"] = step.from_dim;
  }
  if (step.kind == Kind::kAllReduce || step.kind == Kind::kReduceScatter) {
    json["reduce"] = NameOf(layout.join);
  }
  if (step.kind == Kind::kSendRecv) {
    json["boxes"] = BoxesJson(step.transfer);
  } else if (step.kind != Kind::kReshape) {
    json["groups"] = GroupsJson(GroupsAlong(layout.matrix, step.axes), layout);
  }
  Json shapes = Json::array();
  for (DeviceIndex i = 0; i < DeviceCount(layout.matrix); ++i) {
    shapes.push_back(LocalShape(layout, step.shape, i));
  }
  json["shape"] = std::move(shapes);
  if (!layout.ranks.empty()) json["ranks"] = layout.ranks;
  return json;
}

}  // namespace

void CheckOk(const Status& status, const std::string& rule) {
  if (!status.ok()) throw QueryError(rule, std::string(MessageOf(status)));
}

const Json& Member(const Json& object, const char* name) {
  if (!object.is_object()) throw QueryError("question", "an object is expected");
  const auto at = object.find(name);
  if (at == object.end()) throw QueryError("question", fmt::format("\"{}\" is missing", name));
  return *at;
}

int64_t ReadInt(const Json& json, const char* what) {
  if (!json.is_number_integer()) {
    throw QueryError("question",
                     fmt::format("{} has {}, which is no whole number", what,
                                 json.dump(-1, ' ', false, Json::error_handler_t::replace)));
  }
  return json.get<int64_t>();
}

std::vector<int64_t> ReadInts(const Json& json, const char* what) {
  if (!json.is_array()) throw QueryError("question", fmt::format("{} is no list", what));
  std::vector<int64_t> numbers;
  for (const Json& number : json) numbers.push_back(ReadInt(number, what));
  return numbers;
}

Shape ReadShape(const Json& json) {
  const Shape shape = ReadInts(json, "a shape");
  if (shape.size() > kDimensionsMax) {
    throw QueryError("shape", fmt::format("a shape has {} dimensions", shape.size()));
  }
  for (const int64_t n : shape) {
    if (n < 0 || n > kExtentMax) throw QueryError("shape", fmt::format("a dimension is {}", n));
  }
  return shape;
}

uint32_t ReadDevices(const Json& question) {
  const int64_t devices = ReadInt(Member(question, "devices"), "\"devices\"");
  if (devices >= 1 && devices <= kDevicesMax) return static_cast<uint32_t>(devices);
  throw QueryError("devices",
                   fmt::format("{} devices: 1 to {} are possible", devices, kDevicesMax));
}

Strategy ReadStrategy(const Json& json) {
  if (!json.is_array()) throw QueryError("question", "a strategy is a list for each input");
  Strategy strategy;
  for (const Json& input : json) {
    if (!input.is_array()) throw QueryError("question", "a strategy is a list for each input");
    strategy.emplace_back();
    for (const Json& dim : input) strategy.back().push_back(ReadParts(dim));
  }
  return strategy;
}

Layout ReadLayout(const Json& json, const Shape& shape) {
  Layout layout;
  int64_t devices = 1;
  for (const int64_t size : ReadInts(Member(json, "device_matrix"), "\"device_matrix\"")) {
    if (size < 1 || size > kDevicesMax || (devices *= size) > kDevicesMax) {
      throw QueryError("devices", fmt::format("an axis of {} devices", size));
    }
    layout.matrix.push_back(static_cast<uint32_t>(size));
  }
  const Json& map = Member(json, "map");
  if (!map.is_array()) throw QueryError("question", "\"map\" is no list");
  for (const Json& dim : map) layout.dims.push_back(ReadDim(dim, layout));
  if (json.contains("partial")) {
    const Json& partial = json["partial"];
    if (!partial.is_array()) throw QueryError("question", "\"partial\" is no list");
    for (const Json& axis : partial) layout.partial.push_back(ReadAxis(axis, layout));
    std::ranges::sort(layout.partial);
  }
  if (json.contains("reduce")) {
    const Json& reduce = json["reduce"];
    if (reduce != "sum" && reduce != "max") throw QueryError("layout", "\"reduce\" is sum or max");
    layout.join = reduce == "sum" ? Join::kSum : Join::kMax;
  }
  if (json.contains("ranks") && !json["ranks"].is_null()) {
    for (const int64_t rank : ReadInts(json["ranks"], "\"ranks\"")) {
      if (rank < 0 || rank >= int64_t{1} << 31) {
        throw QueryError("ranks", fmt::format("a rank is {}", rank));
      }
      layout.ranks.push_back(static_cast<uint32_t>(rank));
    }
  }
  CheckOk(CheckLayout(layout, shape), "layout");
  return layout;
}

Json MapJson(const Layout& layout) {
  Json map = Json::array();
  for (const CutDim& dim : layout.dims) map.push_back(DimJson(layout, dim));
  return map;
}

Json PartialJson(const Layout& layout) {
  Json partial = Json::array();
  for (const AxisIndex axis : layout.partial) {
    if (layout.matrix[axis] > 1) partial.push_back(FromRight(layout, axis));
  }
  return partial;
}

Json StrategyJson(const Strategy& strategy) {
  Json json = Json::array();
  for (const auto& dims : strategy) {
    json.push_back(Json::array());
    for (const DimParts& parts : dims) {
      json.back().push_back(parts.size() == 1 ? Json(parts[0]) : Json(parts));
    }
  }
  return json;
}

Json GroupsJson(const std::vector<RankList>& groups, const Layout& layout) {
  Json json = Json::array();
  for (const RankList& group : groups) {
    RankList ranks;
    for (const DeviceIndex device : group) ranks.push_back(RankOf(layout, device));
    json.push_back(ranks);
  }
  return json;
}

Json StepsJson(const Redistribution& redistribution) {
  Json steps = Json::array();
  for (const RedistributionStep& step : redistribution.steps) steps.push_back(StepJson(step));
  return steps;
}

std::string NameOf(Join join) {
  return join == Join::kSum ? "sum" : join == Join::kMean ? "mean" : "max";
}

}  // namespace dt::scheduler
