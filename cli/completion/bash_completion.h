// Bash completion of the command line, derived from the parser.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's.
class App;
}

namespace dt::cli {

// Returns the script that `source <(dovetail completion bash)` runs.
std::string BashCompletion(const CLI::App& program);

}  // namespace dt::cli
