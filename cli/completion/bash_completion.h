// Completion of the command line by bash, made from what the parser knows.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace dt::cli {

// The script that `source <(dovetail completion bash)` runs.
std::string BashCompletion(const CLI::App& program);

}  // namespace dt::cli
