#!/usr/bin/env bash
# Installs missing Debian 12 packages that the build needs, without questions. Takes a second if none is missing.
#   --full   also what `scripts/test.sh --full` needs: clang 16, clang-tidy 16, its sanitizer and OpenMP runtimes,
#            Chromium
set -euo pipefail

packages=(
  # the toolchain
  g++ cmake ninja-build ccache git python3 clang-format-16
  # outside libraries (scripts/check/layers.py says where each is used)
  libabsl-dev libzmq3-dev cppzmq-dev libboost-dev librocksdb-dev libtbb-dev libyaml-cpp-dev
  libflatbuffers-dev flatbuffers-compiler libdnnl-dev libgloo-dev libspdlog-dev libfmt-dev libcli11-dev
  nlohmann-json3-dev libxxhash-dev libzstd-dev zlib1g-dev
  # the tests
  libgtest-dev libgmock-dev python3-numpy
)
case "${1:-}" in
  "") ;;
  --full) packages+=(clang-16 clang-tidy-16 libclang-rt-16-dev libomp-16-dev chromium) ;;
  *) echo "usage: scripts/setup.sh [--full]" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this is no Debian system; install what these Debian 12 packages hold by hand:" \
    "${packages[*]}" >&2
  exit 1
fi

# The status is "installed" only for packages that are completely installed.
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
  awk '$2 == "installed" {print $1}' || true)
missing=$(comm -23 <(printf '%s\n' "${packages[@]}" | sort -u) <(sort -u <<<"$installed"))
if [[ -z $missing ]]; then
  echo "setup: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: packages are missing and neither root nor sudo is at hand; as root, run:" \
      "apt-get install ${missing//$'\n'/ }" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing//$'\n'/ }"
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}
# The package lists are updated only if the installation fails with the present ones.
# shellcheck disable=SC2086
if ! apt install -y --no-install-recommends $missing >/dev/null 2>&1; then
  apt update
  apt install -y --no-install-recommends $missing || {
    echo "setup: apt-get could not install the packages above; its messages say why" >&2
    exit 1
  }
fi
echo "setup: done"
