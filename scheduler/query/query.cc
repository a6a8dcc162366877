#include "scheduler/query/query.h"

#include "scheduler/query/graph_query.h"
#include "scheduler/query/layout_query.h"
#include "scheduler/query/node_query.h"

namespace dt::scheduler {
namespace {

Json Answer(const Json& question) {
  if (!question.is_object()) throw QueryError("question", "a question is a JSON object");
  if (question.contains("graph")) return AnswerGraph(question);
  if (question.contains("load")) return AnswerLoad(question);
  if (question.contains("layout")) return AnswerSlice(question);
  if (question.contains("from")) return AnswerRedistribution(question);
  if (question.contains("op") || question.contains("loops")) return AnswerNode(question);
  throw QueryError("question",
                   "a question has \"op\", \"loops\", \"from\", \"layout\", \"load\" or \"graph\"");
}

Json ErrorJson(const QueryError& error) {
  Json json = {{"rule", error.problem.rule}, {"what", error.problem.what}};
  if (!error.node.empty()) json["node"] = error.node;
  if (!error.nearest.is_null()) json["nearest"] = error.nearest;
  return {{"error", std::move(json)}};
}

}  // namespace

std::string AnswerQuery(std::string_view line) {
  Json answer;
  try {
    answer = Answer(Json::parse(line));
  } catch (const QueryError& error) {
    answer = ErrorJson(error);
  } catch (const Json::exception& error) {
    answer = ErrorJson({"question", std::string("the line is no JSON that fits: ") + error.what()});
  } catch (const std::exception& error) {
    // A rule of shapes reads an attribute that the question lacks.
    answer = ErrorJson({"attrs", std::string("the attributes do not fit: ") + error.what()});
  }
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dt::scheduler
