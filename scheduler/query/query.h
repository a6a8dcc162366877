// `dovetail plan query`: questions about layouts, one JSON object for each, without a job.
// docs/commands.md, "plan query", has the forms.
#pragma once

#include <string>
#include <string_view>

namespace dt::scheduler {

// The answer, one line of JSON. Whatever the question is, it is an object: {"error": …} if the
// question cannot be answered.
std::string AnswerQuery(std::string_view line);

}  // namespace dt::scheduler
