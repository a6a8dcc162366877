#!/usr/bin/env bash
# For a machine with a CUDA GPU: builds, runs the tests that use the GPU, also with compute-sanitizer if it is installed,
# then trains one job on the GPU and on the CPU. Ends at the first failure, also if a test finds no GPU. See docs/gpu.md.
#   --arch N          the GPU's compute capability without the point (default: as reported by nvidia-smi)
#   --no-sanitizer    leaves out compute-sanitizer, which takes an hour
set -euo pipefail
cd "$(dirname "$0")/.."

arch=
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
while [[ $# -gt 0 ]]; do
  case "$1" in
    --arch) [[ $# -ge 2 ]] && arch=$2 && shift 2 || { echo "test_card: --arch needs a number" >&2 && exit 2; } ;;
    --no-sanitizer) sanitizer= && shift ;;
    *) echo "usage: scripts/test_card.sh [--arch N] [--no-sanitizer]" >&2 && exit 2 ;;
  esac
done
[[ -n $arch ]] || arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)

build=build/release
cmake --preset release -DDT_WITH_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="$arch"
cmake --build $build --target dovetail dovetail_cuda common_device_test backends_test worker_engine_test worker_collective_test

# Runs the tests of a program that need a GPU; none may be skipped.
run() { # the program's path below build/release/test, then what runs it
  local out
  out=$(mktemp)
  DT_PROGRAM=$PWD/$build/dovetail "${@:2}" "$build/test/$1" --gtest_filter='*RealCard*:*.Card*' 2>&1 | tee "$out"
  if grep -q SKIPPED "$out"; then
    echo "test_card: $1 found no card" >&2
    exit 1
  fi
  rm "$out"
}
programs=(unit/common/device/common_device_test ops/backends_test unit/worker/engine/worker_engine_test)
# Collectives need a second card.
[[ $(nvidia-smi --list-gpus | wc -l) -lt 2 ]] || programs+=(unit/worker/collective/worker_collective_test)
for program in "${programs[@]}"; do run "$program"; done
if [[ -n $sanitizer ]]; then
  for tool in "memcheck --report-api-errors no" synccheck racecheck; do  # One test asks for more memory than any card has.
    for program in "${programs[@]}"; do
      # shellcheck disable=SC2086  # A tool may bring an option.
      run "$program" "$sanitizer" --tool $tool --error-exitcode 1 --leak-check no
    done
  done
fi

# Trains the same job on both devices: the numbers in the last lines should agree in their first digits.
out=build/card
mkdir -p $out
[[ -f runs/quickstart/data/truth.json ]] || $build/dovetail data generate --rows 2000000 --seed 1 --out runs/quickstart/data
for devices in cpu cuda; do
  place=()
  [[ $devices == cpu ]] || place=(--set 'parallel.place=[{match: "*", device: gpu}]')
  $build/dovetail train configs/quickstart.yaml --set train.epochs=1 --set job=card_$devices \
    --set cluster.devices=$devices "${place[@]}" --result $out/$devices.json
done
echo "test_card: all passed; the two jobs' last lines above should agree in their first digits ($out/*.json)"
