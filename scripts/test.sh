#!/usr/bin/env bash
# Installs missing packages, builds, and runs the tests. Repeated runs build only what has changed.
#   (no argument)  the everyday tests: all of fast, sim and e2e in a release build; unit tests of code that reads data from
#                  outside also with AddressSanitizer and UBSan; unit tests of threads also with ThreadSanitizer
#   --full         also slow and fuzz tests, every test with both sanitizers, clang's fuzzers and clang-tidy
# The output ends with ctest's summary of all tests. docs/testing.md describes the kinds of tests.
set -euo pipefail
cd "$(dirname "$0")/.."

full=
case "${1:-}" in
  "") ;;
  --full) full=1 ;;
  *) echo "usage: scripts/test.sh [--full]" >&2; exit 2 ;;
esac

scripts/setup.sh ${full:+--full}
. scripts/ccache.sh
: "${CMAKE_BUILD_PARALLEL_LEVEL:=$(nproc)}"
: "${CTEST_PARALLEL_LEVEL:=$(nproc)}"
export CMAKE_BUILD_PARALLEL_LEVEL CTEST_PARALLEL_LEVEL

# build PRESET TARGET: builds, and prints how long it took. The log is shown only if the build fails.
build() {
  local preset=$1 target=$2 begin=$SECONDS
  local log=build/$preset.log
  mkdir -p build
  echo "test: building $target in build/$preset"
  if ! { cmake --preset "$preset" && cmake --build "build/$preset" --target "$target"; } >"$log" 2>&1; then
    grep -nE -A 8 'error|undefined reference' "$log" | head -n 80 >&2 || tail -n 60 "$log" >&2
    echo "test: the build of $target in build/$preset failed; the whole log is $log" >&2
    exit 1
  fi
  echo "test: built in $((SECONDS - begin)) s"
}

trees=(release asan tsan)
labels='fast|sim|e2e|asan|tsan'
build release all
if [[ -n $full ]]; then
  trees+=(fuzz)
  labels+='|slow|asan-full|tsan-full|fuzz|tidy'
  # Every source of the program alone, for clang-tidy and to show that each includes what it needs.
  build dev dovetail
  build asan all
  build tsan all
  build fuzz fuzz_tests
else
  build asan asan_tests
  build tsan tsan_tests
fi

# One run of ctest over all build trees, so that there is a single summary.
mkdir -p build/everything
for tree in "${trees[@]}"; do
  printf 'subdirs("%s")\n' "$PWD/build/$tree"
done >build/everything/CTestTestfile.cmake
ctest --test-dir build/everything -L "^($labels)\$" --no-tests=error --output-on-failure
