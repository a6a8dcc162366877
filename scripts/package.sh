#!/usr/bin/env bash
# Makes a folder that runs on another machine on which no packages are installed: the program, the CUDA and Arrow libraries
# if the build has them, and every shared library that they need except glibc and the driver. See docs/gpu.md.
#   --build DIR   the build to pack (default build/release); it must have been built
#   --out DIR     the folder (default build/package/dovetail); its old content is replaced
#   --no-cuda     leaves out the CUDA library, cuBLASLt and NCCL (0.7 gigabytes)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

fail() {
  echo "package: $*" >&2
  exit 1
}

build=$root/build/release
out=$root/build/package/dovetail
cuda=1
while [[ $# -gt 0 ]]; do
  case "$1" in
    --build | --out)
      [[ $# -ge 2 ]] || fail "$1 needs a folder"
      [[ $1 == --build ]] && build=$2 || out=$2
      shift 2
      ;;
    --no-cuda) cuda= && shift ;;
    *) echo "usage: scripts/package.sh [--build DIR] [--out DIR] [--no-cuda]" >&2 && exit 2 ;;
  esac
done
[[ -x $build/dovetail ]] || fail "$build/dovetail does not exist; build it: cmake --workflow --preset release"
# Only a folder that this script has made is replaced.
if [[ -e $out && ! -x $out/bin/dovetail && -n $(ls -A "$out") ]]; then
  fail "$out is there and holds something else; name another folder with --out"
fi

rm -rf "$out"
mkdir -p "$out/bin" "$out/lib"
cp "$build/dovetail" "$out/bin/"
packed=("$out/bin/dovetail")
if [[ -n $cuda && -e $build/libdovetail_cuda.so ]]; then
  cp "$build/libdovetail_cuda.so" "$out/bin/"
  packed+=("$out/bin/libdovetail_cuda.so")
  # The CUDA library opens NCCL by its name, if it is there.
  nccl=$(readlink -f "$(dirname "$(env -u LD_LIBRARY_PATH ldd "$build/libdovetail_cuda.so" | awk '/libcublasLt/ { print $3 }')")/libnccl.so.2")
  [[ ! -e $nccl ]] || cp "$nccl" "$out/lib/libnccl.so.2"
fi

for library in libdovetail_arrow.so libdovetail_kafka.so; do
  [[ -e $build/$library ]] || continue
  cp "$build/$library" "$out/bin/"
  packed+=("$out/bin/$library")
done

# True for libraries of the target machine: glibc belongs to its loader, and libcuda to its driver.
is_of_the_machine() {
  case "$1" in
    ld-linux* | linux-vdso* | libc.so.* | libm.so.* | libmvec.so.* | libpthread.so.* | libdl.so.* | librt.so.* | \
      libresolv.so.* | libutil.so.* | libanl.so.* | libcuda.so.* | libnvidia-*) return 0 ;;
    *) return 1 ;;
  esac
}

# Prints "name path" for each library that a file needs, directly or indirectly; the path is empty if it is not found.
needs() {
  env -u LD_LIBRARY_PATH ldd "$1" | awk '$2 == "=>" { print $1, $3 == "not" ? "" : $3 }'
}

for file in "${packed[@]}"; do
  while read -r name path; do
    is_of_the_machine "$name" && continue
    [[ -n $path ]] || fail "$(basename "$file") needs $name, which is not on this machine"
    # cp follows links, so the copy has the name that the loader searches for.
    [[ -e $out/lib/$name ]] || cp "$path" "$out/lib/$name"
  done < <(needs "$build/$(basename "$file")")
done

# Packed files must find all of their libraries in this folder.
for file in "${packed[@]}"; do
  while read -r name path; do
    is_of_the_machine "$name" && continue
    [[ $(realpath -m "$path") == "$(realpath "$out")"/* ]] ||
      fail "the packed $(basename "$file") takes $name from ${path:-nowhere}"
  done < <(needs "$file")
done

cp -r "$root/configs" "$out/"
glibc=$(find "$out/bin" "$out/lib" -type f -exec grep -haoE 'GLIBC_2\.[0-9]+' {} + | sort -uV | tail -n 1)
cat >"$out/README" <<END
Dovetail: run bin/dovetail from anywhere; move the folder as a whole. bin/dovetail --help lists the commands, configs/ holds jobs.
Needs Linux on x86-64-v3 (AVX2, FMA) with glibc ${glibc#GLIBC_} or newer, and for a card NVIDIA's driver; nothing else.
Try, in this folder: bin/dovetail data generate --rows 100000 --seed 1 --out runs/quickstart/data && bin/dovetail train configs/quickstart.yaml
END
echo "package: $out, $(du -sh "$out" | cut -f 1)$([[ -e $out/bin/libdovetail_cuda.so ]] || echo ", without CUDA")"
