# Sourced by runtime/quickstart.sh and tests/run.sh, never run on its own:
# installs what is missing, configures a preset and builds targets of it.
# Sets `root`, the clone.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# What Debian 12 calls the things that the build and the tests need. (gRPC's
# package brings what its headers need: RE2, c-ares, zlib. oneDNN's does
# not bring OpenCL, which its CMake files look for.)
readonly debian_packages=(
  build-essential cmake ninja-build
  libabsl-dev libtbb-dev libgoogle-glog-dev libcli11-dev nlohmann-json3-dev
  libdnnl-dev ocl-icd-opencl-dev libhwy-dev
  libpcre2-dev libutf8proc-dev libcurl4-openssl-dev pkg-config
  prometheus-cpp-dev libgrpc++-dev libssl-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc grpc-proto
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-format git openssl python3 python3-grpcio python3-protobuf
)
# What only the fuzzers need.
readonly fuzz_packages=(clang-14 libclang-rt-14-dev)
# The same for other systems, where only the reader knows the packages' names.
readonly needed_tools=(c++ cmake ninja protoc grpc_cpp_plugin grpc_python_plugin openssl python3)
readonly needed_elsewhere="g++ 12, CMake 3.25, Ninja, Abseil 20220623, oneTBB 2021.8, glog 0.6, \
CLI11 2.1, nlohmann-json 3.11, PCRE2 10.40, utf8proc 2.8, oneDNN 2.6, Highway 1.0.3, gRPC 1.51, OpenSSL 3.0, libcurl 7.88, Protobuf 3.21, grpc-proto, \
prometheus-cpp 1.0, GoogleTest 1.12, Google Benchmark 1.7, Python 3 with grpcio and protobuf (or later ones)"
readonly build_jobs=2  # Some files take over a gigabyte to compile.

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'folio: %s\n' "$*" >&2; exit 1; }

os_name() { (. /etc/os-release && printf '%s %s' "${ID:-unknown}" "${VERSION_ID:-}") 2>/dev/null || printf unknown; }
is_debian_12() { [ "$(os_name)" = "debian 12" ]; }

# missing_packages PACKAGE...
missing_packages() {
  local package
  for package in "$@"; do
    # Not installed packages make dpkg-query fail; what it prints decides.
    case "$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)" in
      ii*) ;;
      *) printf '%s\n' "$package" ;;
    esac
  done
}

# install_packages PACKAGE...
install_packages() {
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -eq 0 ]; then return; fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "these packages are missing, and without sudo only root can install them: ${missing[*]}"
    as_root=(sudo)
  fi
  say "Installing ${#missing[@]} packages: ${missing[*]}"
  "${as_root[@]}" apt-get update ||
    fail "apt-get update failed (its reason is above); these packages are missing: ${missing[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" ||
    fail "apt-get could not install what is missing (its reason is above): ${missing[*]}"
}

check_tools() {
  local tool missing=()
  for tool in "${needed_tools[@]}"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [ "${#missing[@]}" -eq 0 ] ||
    fail "this is $(os_name), not Debian 12, and these tools are missing: ${missing[*]}. Install $needed_elsewhere, and run this again"
}

# install_dependencies [PACKAGE...]: on Debian 12 installs what is missing, and
# those packages too; elsewhere goes on when the tools are there, and leaves the
# libraries to CMake to find.
install_dependencies() {
  if is_debian_12; then install_packages "${debian_packages[@]}" "$@"; else check_tools; fi
}

# build PRESET [TARGET...]: configures and builds build/PRESET.
build() {
  local preset=$1
  shift
  cd "$root"
  # Whoever has ccache profits from it, but only inside the clone.
  export CCACHE_DIR=${CCACHE_DIR:-$root/build/ccache}
  say "Configuring build/$preset"
  # What CMake finds and does not find matters only when it fails.
  local log=$root/build/configure-$preset.log
  mkdir -p "$root/build"
  if ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    is_debian_12 || fail "CMake did not find everything (its reason is above) on this $(os_name), which is not Debian 12; needed are $needed_elsewhere"
    fail "CMake failed; its reason is above"
  fi
  say "Building build/$preset"
  cmake --build "build/$preset" --parallel "$build_jobs" ${1:+--target "$@"} ||
    fail "the build failed; its reason is above"
}
