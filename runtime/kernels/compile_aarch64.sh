#!/bin/sh
# Compiles the kernels for aarch64, to see that they are not tied to x86: every
# source but oneDNN's callers, whose library Debian has for the host alone.
# Needs the package g++-aarch64-linux-gnu. Writes nothing.
set -eu
cd "$(dirname "$0")/../.."
compiler=${CXX_AARCH64:-aarch64-linux-gnu-g++}
if ! command -v "$compiler" >/dev/null; then
  echo "There is no $compiler; apt-get install g++-aarch64-linux-gnu" >&2
  exit 1
fi
# Only headers that do not depend on the machine are needed from the host.
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
for name in hwy glog gflags absl; do
  for root in /usr/include /usr/include/x86_64-linux-gnu; do
    if [ -d "$root/$name" ]; then ln -s "$root/$name" "$headers/$name"; fi
  done
done
# Vectors whose size is not known when compiling can be no members of arrays.
sve="(HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)"
for source in runtime/kernels/*.cc; do
  if grep -q 'oneapi/dnnl' "$source"; then continue; fi
  echo "$source"
  "$compiler" -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -Werror \
    -Wno-missing-field-initializers -DHWY_SHARED_DEFINE \
    -DGFLAGS_IS_A_DLL=0 "-DHWY_DISABLED_TARGETS=$sve" -I. -isystem "$headers" \
    -c "$source" -o /dev/null
done
echo "All of them compile for aarch64."
