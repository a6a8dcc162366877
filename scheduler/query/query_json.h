// Layouts, strategies and redistributions as the JSON of `plan query`.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "common/layout/redistribute.h"
#include "common/storage/json_file.h"
#include "scheduler/parallel/node_cut.h"

namespace dt::scheduler {

// Why a question has no answer. Thrown and caught within scheduler/query only.
struct QueryError : std::exception {
  QueryError(std::string rule_in, std::string what_in)
      : problem{std::move(rule_in), std::move(what_in)} {}
  explicit QueryError(CutProblem problem_in) : problem(std::move(problem_in)) {}
  const char* what() const noexcept override { return problem.what.c_str(); }

  CutProblem problem;
  std::string node;
  Json nearest;
};
// Throws QueryError unless the status is OK.
void CheckOk(const Status& status, const std::string& rule);

// The member of an object. Throws QueryError if there is none.
const Json& Member(const Json& object, const char* name);
int64_t ReadInt(const Json& json, const char* what);
std::vector<int64_t> ReadInts(const Json& json, const char* what);
Shape ReadShape(const Json& json);
uint32_t ReadDevices(const Json& question);
Strategy ReadStrategy(const Json& json);

// {"device_matrix": [2,4], "map": [1,-1], "partial": [0], "reduce": "sum", "ranks": [...]}. Axes
// are counted from the right, the last one is 0. A dimension of several factors is {"factors":
// [[size, map], …]}, where size 0 is what the others leave; one with given lengths of parts is
// {"map": m, "sizes": [...]}.
Layout ReadLayout(const Json& json, const Shape& shape);
Json MapJson(const Layout& layout);
Json PartialJson(const Layout& layout);
Json StrategyJson(const Strategy& strategy);
Json GroupsJson(const std::vector<RankList>& groups, const Layout& layout);
// The operators of a redistribution.
Json StepsJson(const Redistribution& redistribution);
std::string NameOf(Join join);

}  // namespace dt::scheduler
