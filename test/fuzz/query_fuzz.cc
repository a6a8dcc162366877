// Any line gives one line of JSON: an answer, or an error with a rule and a sentence.
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "common/base/check.h"
#include "scheduler/query/query.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string question(data, data + size);
  const std::string answer = dt::scheduler::AnswerQuery(question);
  DT_CHECK(answer.find('\n') == answer.npos);
  const auto json = nlohmann::json::parse(answer);
  if (!json.contains("error")) return 0;
  DT_CHECK(!json["error"]["rule"].get<std::string>().empty());
  DT_CHECK(!json["error"]["what"].get<std::string>().empty());
  return 0;
}
