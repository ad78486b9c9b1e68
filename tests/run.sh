#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test.
# The last lines are ctest's summary.
. "$(dirname "${BASH_SOURCE[0]}")/../runtime/setup.sh"

usage() {
  cat <<'TEXT'
Usage: tests/run.sh [--asan | --tsan | --fuzz SECONDS | --simulate SEEDS |
                    --soak CLIENTS]

Installs what is missing (Debian 12), builds everything and runs every test.

  --asan   with AddressSanitizer and UndefinedBehaviorSanitizer, in build/asan
  --tsan   with ThreadSanitizer, all but gRPC and oneTBB, in build/tsan
  --fuzz   instead of the tests, libFuzzer on every parser of files, for SECONDS
           in all; inputs that crash one are kept in build/fuzz/crashes
  --simulate   instead of the tests, the simulation of the engine with so many
           seeds; 8000 take about a minute
  --soak   instead of the tests, the one of a server with many clients, most of
           them badly behaved, with so many of them; 1000 take about a minute
  --help   this text
  (none)   the Release build, in build/release

Examples:
  tests/run.sh
  tests/run.sh --asan
  tests/run.sh --fuzz 60
TEXT
}

if [ "${1:-}" = --fuzz ]; then
  [[ "$#" -eq 2 && "$2" =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
  . "$root/tests/fuzz/fuzz.sh"
  install_dependencies "${fuzz_packages[@]}"
  build fuzz
  fuzz_all "$2"
  exit
fi

if [ "${1:-}" = --simulate ]; then
  [[ "$#" -eq 2 && "$2" =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
  install_dependencies
  build release
  FOLIO_SIMULATION_SEEDS="$2" exec "$root/build/release/bin/engine_simulation_test"
fi

if [ "${1:-}" = --soak ]; then
  [[ "$#" -eq 2 && "$2" =~ ^[1-9][0-9]*$ ]] || { usage >&2; exit 2; }
  install_dependencies
  build release
  FOLIO_SOAK_CLIENTS="$2" exec "$root/build/release/bin/soak_test"
fi

preset=release
[ "$#" -le 1 ] || { usage >&2; exit 2; }
case "${1:-}" in
  "") ;;
  --asan) preset=asan ;;
  --tsan) preset=tsan ;;
  -h | --help) usage; exit 0 ;;
  *) printf 'folio: unknown option %s; tests/run.sh --help says what there is\n' "$1" >&2; exit 2 ;;
esac

install_dependencies
build "$preset"
say "Testing build/$preset"
exec ctest --preset "$preset" --parallel "$build_jobs"
