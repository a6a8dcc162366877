#!/usr/bin/env bash
# From a fresh machine to a trained model: installs what is missing, builds, makes a data set, trains on
# 1 scheduler, 2 servers and 2 workers, and prints where the report and the checkpoints are. A second run builds and
# generates nothing, and trains again.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
. scripts/ccache.sh
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

out=runs/quickstart
mkdir -p build "$out"
echo "quickstart: building build/release/dovetail (the first time takes minutes)"
if ! { cmake --preset release && cmake --build build/release --target dovetail; } >build/quickstart.log 2>&1; then
  tail -n 40 build/quickstart.log >&2
  echo "quickstart: the build failed; the whole log is build/quickstart.log" >&2
  exit 1
fi
dovetail=build/release/dovetail

# truth.json is written last: if it exists, the data set is complete.
if [[ ! -f $out/data/truth.json ]]; then
  echo "quickstart: making 2,000,000 rows of click data in $out/data"
  "$dovetail" data generate --rows 2000000 --seed 1 --out "$out/data"
fi

echo "quickstart: training on 1 scheduler, 2 servers and 2 workers"
"$dovetail" launch configs/quickstart.yaml --result "$out/result.json"
"$dovetail" report "$out/result.json" --truth "$out/data/truth.json" --out "$out/report.html"
echo "quickstart: the report is $PWD/$out/report.html, checkpoints are in $PWD/$out/checkpoints"
