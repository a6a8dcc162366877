// Bash completion of the command line, derived from the parser.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace dt::cli {

// Returns the script that `source <(dovetail completion bash)` runs.
std::string BashCompletion(const CLI::App& program);

}  // namespace dt::cli
