#include "cli/completion/bash_completion.h"

#include <algorithm>
#include <map>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/base/text.h"

namespace dt::cli {
namespace {

// The possible next words after each command ("", "train", "data generate").
using Words = std::map<std::string, std::vector<std::string>>;

// The values of an option, from the name of its type: "auto|never|DIR", or in CLI11's form
// "TEXT:{json,dot}". Words in upper case are placeholders and are left out.
std::vector<std::string> ValuesOf(const CLI::Option& option) {
  std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.find('}');
  if (open != std::string::npos && close != std::string::npos) {
    type = type.substr(open + 1, close - open - 1);
    std::ranges::replace(type, ',', '|');
  }
  std::vector<std::string> values;
  const auto part_of_a_value = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
  for (const std::string_view value : SplitText(type, '|')) {
    if (!value.empty() && std::ranges::all_of(value, part_of_a_value)) values.emplace_back(value);
  }
  return values;
}

// Collects the words after a command. Hidden commands and options have no group.
void Collect(const CLI::App& command, const std::string& name, Words& words, Words& values) {
  std::vector<std::string>& here = words[name];
  for (const CLI::App* sub : command.get_subcommands({})) {
    if (sub->get_group().empty()) continue;
    here.push_back(sub->get_name());
    const std::string path =
        name.empty() ? sub->get_name() : fmt::format("{} {}", name, sub->get_name());
    Collect(*sub, path, words, values);
  }
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    const std::vector<std::string> of_option = ValuesOf(*option);
    for (const std::string& long_name : option->get_lnames()) {
      const std::string flag = "--" + long_name;
      here.push_back(flag);
      if (!of_option.empty()) values[fmt::format("{} {}", name, flag)] = of_option;
    }
    // A positional argument, such as the shell of `completion`.
    if (option->get_lnames().empty()) here.insert(here.end(), of_option.begin(), of_option.end());
  }
}

std::string CasesOf(const Words& words) {
  std::string cases;
  for (const auto& [name, list] : words) {
    cases += fmt::format("    \"{}\") words=\"{}\" ;;\n", name, JoinText(list, " "));
  }
  return cases;
}

// Parameters: 1, the commands as patterns; 2, the words after each command; 3, the values of the
// options. If nothing fits, bash completes file names.
constexpr char kScript[] = R"(# Completion of dovetail for bash: source <(dovetail completion bash)
_dovetail() {{
  local i command='' words=''
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${{command:+$command }}${{COMP_WORDS[i]}}" in
      {}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case $command in
{}  esac
  case "$command ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{}    *\ --?*) [[ ${{COMP_WORDS[COMP_CWORD]}} == -* ]] || words='' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o bashdefault -o default -F _dovetail dovetail
)";

}  // namespace

std::string BashCompletion(const CLI::App& program) {
  Words words, values;
  Collect(program, "", words, values);
  std::vector<std::string> commands;
  for (const auto& [name, list] : words) {
    if (!name.empty()) commands.push_back(fmt::format("\"{}\"", name));
  }
  return fmt::format(kScript, JoinText(commands, " | "), CasesOf(words), CasesOf(values));
}

}  // namespace dt::cli
