// Advice for users who write a key of the job file as a flag: `--epochs 3`.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace dt::cli {

// `why`: the parser's message, which names the flags that it does not know. If one of them has the
// name of a key, the line that says how to set the key; else "".
std::string KeyHint(std::span<char* const> arguments, std::string_view why);

}  // namespace dt::cli
