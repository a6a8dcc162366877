#!/usr/bin/env bash
# Prints the name of every C++ file that clang-format 16 would change; --fix changes them.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v clang-format-16 >/dev/null; then
  echo "format: skipped, clang-format-16 is not installed (scripts/setup.sh installs it)"
  exit 0
fi
# shellcheck disable=SC2016
check='clang-format-16 --dry-run --Werror "$1" 2>/dev/null || { echo "$1: scripts/check/format.sh --fix"; exit 1; }'
# shellcheck disable=SC2016
[[ ${1:-} == --fix ]] && check='clang-format-16 -i "$1"'
find common ops scheduler server worker cli test -type f \
  \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' \) -print0 |
  xargs -0 -r -n 1 -P "$(nproc)" bash -c "$check" format
