// A command line as a user types it, parsed, with what was printed.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/command_line.h"

namespace dt::cli {

struct Parsed {
  int code = 0;  // -1: go on.
  CommandLine line;
  std::string output, errors;
};

inline Parsed Parse(std::vector<std::string> words) {
  words.insert(words.begin(), "dovetail");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Parsed parsed;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  parsed.code = ParseCommandLine(static_cast<int>(words.size()), argv.data(), parsed.line);
  parsed.output = testing::internal::GetCapturedStdout();
  parsed.errors = testing::internal::GetCapturedStderr();
  return parsed;
}

}  // namespace dt::cli
