#!/usr/bin/env bash
# clang_tidy.sh BUILD [FILES]: runs clang-tidy 16 on FILES (default: all sources of the program), as the build directory
# BUILD compiles them.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1
shift
if ! command -v clang-tidy-16 >/dev/null; then
  echo "clang_tidy: skipped, clang-tidy-16 is not installed (scripts/setup.sh --full installs it)"
  exit 0
fi
files=("$@")
if [[ ${#files[@]} -eq 0 ]]; then
  # A build without Arrow or librdkafka has no headers for the sources of their libraries.
  grep -q parts_arrow.cc "$build/compile_commands.json" && arrow= || arrow='*_arrow.cc'
  grep -q topic_kafka.cc "$build/compile_commands.json" && kafka= || kafka='*_kafka.cc'
  mapfile -t files < <(find common ops scheduler server worker cli -name '*.cc' ! -name "$arrow" ! -name "$kafka" | sort)
fi
printf '%s\0' "${files[@]}" |
  xargs -0 -n 4 -P "$(nproc)" clang-tidy-16 -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wthread-safety
