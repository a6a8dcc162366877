#!/usr/bin/env bash
# Installs what the build needs and is missing, without questions: Debian 12 packages, and into build/python the Python
# packages pyarrow (Arrow C++, for Parquet and remote files) and moto (an S3 server for the tests). Takes a second if
# nothing is missing. Without the Python packages, the program is built without Arrow.
#   --full   also what `scripts/test.sh --full` needs: clang 16, clang-tidy 16, its sanitizer and OpenMP runtimes,
#            Chromium
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

packages=(
  # the toolchain
  g++ cmake ninja-build ccache git python3 clang-format-16
  # outside libraries (scripts/check/layers.py says where each is used)
  libabsl-dev libzmq3-dev cppzmq-dev libboost-dev librocksdb-dev libtbb-dev libyaml-cpp-dev
  libflatbuffers-dev flatbuffers-compiler libdnnl-dev libgloo-dev libspdlog-dev libfmt-dev libcli11-dev
  nlohmann-json3-dev libxxhash-dev libzstd-dev zlib1g-dev librdkafka-dev
  # the certificates that s3:// and gs:// are checked with
  ca-certificates
  # the tests
  libgtest-dev libgmock-dev python3-numpy python3-venv
)
# Less than moto[server] brings: only what moto's S3 server imports.
python_packages=(pyarrow==26.0.1 'moto[s3]==5.2.5' flask==3.1.3 flask-cors==6.0.5)
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

# Puts the Python packages beside the build trees, where CMake finds them. A file says which are there.
install_python_packages() {
  local python=$root/build/python
  local installed=$python/installed
  [[ -f $installed && $(<"$installed") == "${python_packages[*]}" ]] && return
  echo "setup: installing ${python_packages[*]} into build/python"
  if python3 -m venv "$python" &&
    "$python/bin/pip" install -q --disable-pip-version-check --timeout 20 --retries 2 "${python_packages[@]}"; then
    echo "${python_packages[*]}" >"$installed"
  else
    echo "setup: the Python packages above could not be installed; the build goes on without Arrow, so without" \
      "format: parquet and s3://, gs:// and hdfs://" >&2
  fi
}

if [[ -z $missing ]]; then
  install_python_packages
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
install_python_packages
echo "setup: done"
