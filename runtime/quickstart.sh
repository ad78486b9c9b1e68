#!/usr/bin/env bash
# From a clone to tokens: installs what is missing, builds, starts a server on
# the embedded model, streams a completion from it, shows the server's memory
# while it works and the reports of batches, and stops the server.
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

case "${1:-}" in
  "") ;;
  -h | --help) printf 'Usage: runtime/quickstart.sh (it takes no options)\n'; exit 0 ;;
  *) printf 'folio: unknown option %s; runtime/quickstart.sh takes none\n' "$1" >&2; exit 2 ;;
esac

install_dependencies
build release folio

readonly folio=$root/build/release/bin/folio
readonly scratch=$root/build/quickstart
mkdir -p "$scratch"

# wait_for PID FILE: until FILE has a line; fails when the process ends before.
wait_for() {
  local i
  for ((i = 0; i < 600; ++i)); do
    if grep -q . "$2"; then return; fi
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  cat "$scratch"/*.log >&2
  fail "nothing came into $2; what the processes said is above"
}

say "Starting a server"
: >"$scratch/serve.out"
"$folio" serve --listen 127.0.0.1:0 --weights-dtype f32 >"$scratch/serve.out" 2>"$scratch/serve.log" &
readonly server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
wait_for "$server" "$scratch/serve.out"
cat "$scratch/serve.out"
address=$(sed -n 's/^listening on //p' "$scratch/serve.out")
readonly address

: >"$scratch/batches.out"
"$folio" memory --server "$address" --follow >"$scratch/batches.out" 2>"$scratch/batches.log" &
readonly follower=$!
wait_for "$follower" "$scratch/batches.out"  # Its header: it follows.

readonly prompt="And the king said unto his servants,"
say "folio generate --server $address --prompt \"$prompt\" --max-tokens 60 --temperature 0.5 --seed 10"
"$folio" generate --server "$address" --prompt "$prompt" --max-tokens 60 --temperature 0.5 --seed 10

# A report in the middle of three more requests, each long enough to be met: the
# last in which any of them ran, unless there is one with all three.
say "folio memory --server $address, while three requests run"
generators=()
for i in 1 2 3; do
  "$folio" generate --server "$address" --prompt "$prompt" --max-tokens 900 --ignore-eos --temperature 0.8 --seed "$i" \
    >"$scratch/generate-$i.out" 2>"$scratch/generate-$i.log" &
  generators+=("$!")
done
: >"$scratch/report.out"
for ((i = 0; i < 50; ++i)); do
  "$folio" memory --server "$address" >"$scratch/report.new"
  if grep -q '^sequences *[1-9]' "$scratch/report.new"; then mv "$scratch/report.new" "$scratch/report.out"; fi
  if grep -q '^sequences *3' "$scratch/report.out"; then break; fi
done
cat "$scratch/report.out"
for generator in "${generators[@]}"; do
  wait "$generator" || fail "folio generate ended with status $?: $(cat "$scratch"/generate-*.log)"
done

# The follower ends with the server.
kill "$server"
trap - EXIT
wait "$server" || fail "the server ended with status $?; its log is $scratch/serve.log"
wait "$follower" || fail "folio memory --follow ended with status $?: $(cat "$scratch/batches.log")"

say "The memory report of each batch (folio memory --server $address --follow), first and last"
head -n 6 "$scratch/batches.out"  # The header, and five.
printf '   ...\n'
tail -n 5 "$scratch/batches.out"
say "Done; the server has stopped. Next: $folio --help"
