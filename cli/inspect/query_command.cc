// `dovetail plan query`: answers each line of standard input with a line.
#include <cstdio>
#include <iostream>
#include <string>

#include "cli/commands.h"
#include "scheduler/query/query.h"

namespace dt::cli {

int RunPlanQuery() {
  for (std::string line; std::getline(std::cin, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string answer = scheduler::AnswerQuery(line) + "\n";
    std::fwrite(answer.data(), 1, answer.size(), stdout);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace dt::cli
