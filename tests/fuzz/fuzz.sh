# Sourced by tests/run.sh, never run on its own: runs the fuzz targets that are
# built in build/fuzz.

# An allocation beyond these limits counts as a crash: inputs have up to 64 KiB,
# and parsers may take memory in proportion to them.
readonly fuzz_limits=(-max_len=65536 -malloc_limit_mb=16 -rss_limit_mb=1024 -timeout=10)

# fuzz_one NAME SECONDS: prints a line of summary; false after a crash.
fuzz_one() {
  local name=$1 seconds=$2 dir=$root/build/fuzz
  local log=$dir/$name.log corpus=$dir/corpus/$name seeds=$dir/seeds/$name
  mkdir -p "$corpus" "$dir/crashes"
  rm -rf "$seeds"
  "$dir/bin/${name}_seeds" "$seeds" || fail "${name}_seeds failed; its reason is above"
  local status=0
  "$dir/bin/${name}_fuzz" "${fuzz_limits[@]}" -max_total_time="$seconds" -print_final_stats=1 \
    -artifact_prefix="$dir/crashes/$name-" "$corpus" "$seeds" >"$log" 2>&1 || status=$?
  local runs coverage
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  printf '%-16s %10s inputs, %6s edges, %5s files kept  %s\n' "$name" "${runs:-?}" "${coverage:-?}" \
    "$(find "$corpus" -type f | wc -l)" "$([ "$status" -eq 0 ] && echo ok || echo "CRASHED: see $log")"
  [ "$status" -eq 0 ] || { tail -n 30 "$log" >&2; return 1; }
}

# fuzz_all SECONDS: every target, an equal part of the time each.
fuzz_all() {
  local targets=("$root"/build/fuzz/bin/*_fuzz) target crashed=0
  local seconds=$((($1 + ${#targets[@]} - 1) / ${#targets[@]}))
  say "Fuzzing ${#targets[@]} parsers, ${seconds} s each"
  for target in "${targets[@]}"; do
    fuzz_one "$(basename "$target" _fuzz)" "$seconds" || crashed=1
  done
  [ "$crashed" -eq 0 ] || fail "a parser crashed; the input is in build/fuzz/crashes"
}
