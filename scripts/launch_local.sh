#!/usr/bin/env bash
# launch_local.sh JOB.yaml [flags]: runs all roles of a job as processes on this machine; Ctrl-C stops them cleanly.
set -euo pipefail
dovetail=${DOVETAIL:-$(dirname "$0")/../build/release/dovetail}
if [[ ! -x $dovetail ]]; then
  echo "launch_local: $dovetail does not exist; build it: cmake --workflow --preset release" >&2
  exit 1
fi
exec "$dovetail" launch "$@"
