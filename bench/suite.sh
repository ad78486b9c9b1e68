#!/usr/bin/env bash
# The standard load tests: six scenarios on two models, a page for each and one
# that compares them.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() {
  cat <<'TEXT'
Usage: bench/suite.sh [--out DIR] [--bin DIR] [--models LIST] [--dtype TYPE] [--quick]
       bench/suite.sh --peer URL [--out DIR] [--bin DIR] [--models LIST] [--quick]

Runs each scenario on a Folio server of its own, on this machine, and writes a
page (SCENARIO.html), its numbers (SCENARIO.json), and a summary of all
(summary.html, summary.txt). It takes about six minutes on two cores.

  burst     chat, all requests at once
  steady    chat at a steady rate, while long prompts arrive
  prefix    chat with one of four long system prompts
  long      a few requests with long contexts, at once
  overload  chat at twice the rate that the burst was served at
  pressure  the burst with a KV pool of a tenth

  --out DIR      where results go. Default: build/suite
  --bin DIR      where folio and folio-load are. Default: build/release/bin
  --models LIST  of 135m (random:llama-135m) and tiny (the embedded model), with a
                 comma between them; of a peer one, which says whose lengths the
                 requests have. Default: both; of a peer 135m
  --dtype TYPE   of the weights of 135m. Default: bf16
  --peer URL     runs the same on this server instead, folio:// or openai://, but
                 for "pressure", as its pool is its own
  --quick        a few requests of each, in a minute or two, to see that all works

Examples:
  bench/suite.sh
  bench/suite.sh --models 135m --dtype int8 --out build/suite-int8
  bench/suite.sh --peer openai://127.0.0.1:8080/v1 --out build/suite-peer
TEXT
}

fail() { printf 'suite.sh: %s\n' "$*" >&2; exit 1; }
bad_usage() { printf 'suite.sh: %s; --help says what there is\n' "$*" >&2; exit 2; }

out=$root/build/suite
bin=$root/build/release/bin
models=
dtype=bf16
peer=
quick=
while [ "$#" -gt 0 ]; do
  case "$1" in
    --out | --bin | --models | --dtype | --peer)
      [ "$#" -ge 2 ] && [ -n "$2" ] || bad_usage "$1 needs a value"
      declare "${1#--}=$2"
      shift 2
      ;;
    --quick) quick=1; shift ;;
    -h | --help) usage; exit 0 ;;
    *) bad_usage "unknown option $1" ;;
  esac
done
if [ -z "$models" ]; then
  if [ -n "$peer" ]; then models=135m; else models=135m,tiny; fi
fi
IFS=, read -ra model_list <<<"$models"
for model in "${model_list[@]}"; do
  case "$model" in 135m | tiny) ;; *) bad_usage "--models has '$model'; there are 135m and tiny" ;; esac
done
[ -z "$peer" ] || [ "${#model_list[@]}" -eq 1 ] || bad_usage "--peer serves one model; give one in --models"
for program in folio folio-load; do
  [ -x "$bin/$program" ] || fail "$bin/$program is not there; build it first (./tests/run.sh), or give --bin"
done
mkdir -p "$out"
rm -f "$out"/*.json "$out"/*.html "$out"/summary.txt

server=
stop_server() {
  [ -n "$server" ] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
trap stop_server EXIT

# start_server MODEL POOL_MIB: sets `target`.
start_server() {
  local flags=() address i
  if [ "$1" = 135m ]; then flags=(--model random:llama-135m --weights-dtype "$dtype"); fi
  "$bin/folio" serve --listen 127.0.0.1:0 --kv-pool "$2MiB" --max-batch-sequences 16 --target-itl 50ms "${flags[@]}" \
    >"$out/serve.out" 2>"$out/serve.log" &
  server=$!
  for ((i = 0; i < 1200; ++i)); do
    address=$(sed -n 's/^listening on //p' "$out/serve.out")
    if [ -n "$address" ]; then target=folio://$address; return; fi
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$out/serve.log" >&2
  fail "the server did not start; what it said is above"
}

# The lengths that fit a model's context, and rates near its capacity.
sizes() {
  long_every=10
  if [ "$1" = 135m ]; then
    pool_mib=1024
    chat=(--prompt-tokens lognormal:200,0.9,2000 --output-tokens lognormal:100,0.8,400)
    burst_count=64 rate=1 steady_count=40 long_prompt=3000
    prefix_tokens=1000 prefix_rate=2 prefix_count=60
    long_context=(--requests 8 --prompt-tokens uniform:3000-6000 --output-tokens 64)
    overload_count=128
  else
    pool_mib=64
    chat=(--prompt-tokens lognormal:100,0.7,400 --output-tokens lognormal:100,0.7,400)
    burst_count=256 rate=20 steady_count=300 long_prompt=900
    prefix_tokens=400 prefix_rate=20 prefix_count=300
    long_context=(--requests 64 --prompt-tokens uniform:700-900 --output-tokens 64)
    overload_count=512
  fi
  if [ -n "$quick" ]; then
    burst_count=8 steady_count=8 long_every=4 prefix_count=8 overload_count=8
    long_context[1]=4
  fi
}

# run MODEL SCENARIO FLAG...: a scenario, whose requests may be refused.
run() {
  local name=$1-$2
  printf '\n'
  "$bin/folio-load" --target "$target" --name "$name" --goodput ttft:1000,itl:100 --json "$out/$name.json" \
    --report "$out/$name.html" "${@:3}"
  results+=("$out/$name.json")
}

# on_server MODEL POOL_MIB SCENARIO FLAG...: each scenario begins with an empty
# prefix cache and an idle server.
on_server() {
  if [ -n "$peer" ]; then target=$peer; else start_server "$1" "$2"; fi
  run "$1" "${@:3}"
  stop_server
}

# twice FILE: twice the requests a second that were served.
twice() {
  python3 -c '
import json, sys
totals = json.load(open(sys.argv[1]))["runs"][0]["totals"]
print(round(2 * next(t["value"] for t in totals if t["key"] == "requests_per_second"), 3))' "$1"
}

results=()
for model in "${model_list[@]}"; do
  sizes "$model"
  burst=(--requests "$burst_count" "${chat[@]}")
  on_server "$model" "$pool_mib" burst "${burst[@]}"
  on_server "$model" "$pool_mib" steady --rate "$rate" --requests "$steady_count" --long-prompt-every "$long_every" \
    --long-prompt-tokens "$long_prompt" "${chat[@]}"
  on_server "$model" "$pool_mib" prefix --rate "$prefix_rate" --requests "$prefix_count" --shared-prefix "$prefix_tokens" \
    --prefix-groups 4 --prompt-tokens uniform:20-100 --output-tokens uniform:20-100
  on_server "$model" "$pool_mib" long "${long_context[@]}"
  on_server "$model" "$pool_mib" overload --rate "$(twice "$out/$model-burst.json")" --requests "$overload_count" "${chat[@]}"
  if [ -z "$peer" ]; then on_server "$model" $((pool_mib / 10)) pressure "${burst[@]}"; fi
done

printf '\n== Summary\n'
"$bin/folio-load" --compare "${results[@]}" --report "$out/summary.html" | tee "$out/summary.txt"
printf '\nPages are in %s\n' "$out"
