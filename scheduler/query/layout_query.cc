#include "scheduler/query/layout_query.h"

#include <algorithm>

#include <fmt/format.h>

namespace dt::scheduler {
namespace {

DeviceIndex ReadRank(const Json& question, const Layout& layout) {
  const int64_t rank = ReadInt(Member(question, "rank"), "\"rank\"");
  for (DeviceIndex i = 0; i < DeviceCount(layout.matrix); ++i) {
    if (RankOf(layout, i) == rank) return i;
  }
  throw QueryError("rank", fmt::format("rank {} holds nothing of this layout", rank));
}

// Where a device's part of a dimension begins; also if it is empty.
int64_t BeginOf(const Layout& layout, const CutDim& dim, int64_t extent, DeviceIndex device) {
  if (dim.empty() || !dim[0].parts.empty() || dim.size() > 1) return 0;
  const std::vector<uint32_t> at = CoordinatesOf(layout.matrix, device);
  Range range{0, extent};
  for (const AxisIndex axis : dim[0].axes) range = EvenPart(range, layout.matrix[axis], at[axis]);
  return range.begin;
}

RankList RanksOf(const RankList& devices, const Layout& layout) {
  RankList ranks;
  for (const DeviceIndex device : devices) ranks.push_back(RankOf(layout, device));
  return ranks;
}

}  // namespace

Json AnswerRedistribution(const Json& question) {
  const Shape shape = ReadShape(Member(question, "shape"));
  const Shape to_shape = question.contains("to_shape") && !question["to_shape"].is_null()
                             ? ReadShape(question["to_shape"])
                             : shape;
  const Layout from = ReadLayout(Member(question, "from"), shape);
  const Layout to = ReadLayout(Member(question, "to"), to_shape);
  RedistributionOptions options;
  if (question.contains("all_to_all")) {
    if (!question["all_to_all"].is_boolean()) {
      throw QueryError("question", "\"all_to_all\" is true or false");
    }
    options.all_to_all = question["all_to_all"].get<bool>();
  }
  const auto result = Redistribute({from, shape}, {to, to_shape}, options);
  CheckOk(result.status(), "layout");
  return {
      {"operators", StepsJson(*result)}, {"bytes", result->bytes}, {"seconds", result->seconds}};
}

Json AnswerSlice(const Json& question) {
  const Shape shape = ReadShape(Member(question, "shape"));
  const Layout layout = ReadLayout(Member(question, "layout"), shape);
  const DeviceIndex device = ReadRank(question, layout);
  const Slice slice = SliceOf(layout, shape, device);
  Json answer, offset = Json::array();
  bool several = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    several = several || slice[d].size() > 1;
    offset.push_back(slice[d].empty() ? BeginOf(layout, layout.dims[d], shape[d], device)
                                      : slice[d][0].begin);
  }
  answer["offset"] = std::move(offset);
  answer["size"] = ShapeOf(slice);
  if (several) {
    answer["boxes"] = Json::array();
    for (const Box& box : BoxesOf(slice)) {
      Json begin = Json::array(), size = Json::array();
      for (const Range& range : box) {
        begin.push_back(range.begin);
        size.push_back(range.size());
      }
      answer["boxes"].push_back({{"offset", begin}, {"size", size}});
    }
  }
  Json groups = Json::array();
  for (AxisIndex axis = 0; axis < layout.matrix.size(); ++axis) {
    groups.push_back(RanksOf(GroupOf(layout.matrix, {{axis}}, device), layout));
  }
  answer["axis_groups"] = std::move(groups);
  answer["replicas"] = RanksOf(ReplicasOf(layout, device), layout);
  return answer;
}

Json AnswerLoad(const Json& question) {
  const Json& load = Member(question, "load");
  const Shape shape = ReadShape(Member(load, "shape"));
  const Layout from = ReadLayout(Member(load, "from"), shape);
  const Layout to = ReadLayout(Member(load, "to"), shape);
  if (!from.partial.empty() || !to.partial.empty()) {
    throw QueryError("layout", "what is loaded is no partial sum");
  }
  return {{"ranks", SendersTo(from, to, shape, ReadRank(load, to))}};
}

}  // namespace dt::scheduler
