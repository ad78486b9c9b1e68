#!/usr/bin/env python3
"""Compares Folio with llama.cpp on one model file, in one run.

llama.cpp comes prebuilt, for Linux on x86-64, with the npm package
node-llama-cpp. The first run installs it (85 MB, from the npm registry) into
--packages, which is kept outside the sources. Needs node 20 and npm.

For each pair of types, `folio bench --write-gguf` writes the model in the
peer's type. Then both programs run in turn, --rounds times, with the same file,
prompts and threads: Folio with --weights-dtype, the peer with flash attention
on and off, of which the better median counts. EOS is ignored, and each stream
generates the same number of tokens. Nothing else should run on the machine: the
peer, whose threads spin while they wait for each other, then loses far more
than Folio. So what other processes took of the cores meanwhile is a part of the
output; ratios with more than a few percent of that mean nothing. With
--wait-for-quiet each program starts only when the machine has nothing to do.

The peer's rates are those of llama_decode alone, one batch a step. Folio's are
of whole steps, sampling and all else included. A ratio above 1 says that Folio
is faster; it is the median of those of the rounds.

Examples:
  # bf16 against bf16, int8 against Q8_0, and the best of all against the best.
  bench/peers/run.py --folio build/bin/folio \\
      --types bf16:bf16,int8:q8_0,int4:q4_0
  # A model whose weights are larger than caches, 4 bits.
  bench/peers/run.py --folio build/bin/folio --model random:llama-1b \\
      --types int4:q4_0 --streams 1,16
  # Context: 16 streams of 2,000 tokens, and a prompt of 4,096.
  bench/peers/run.py --folio build/bin/folio --prompt-tokens 2000 --streams 16
  bench/peers/run.py --folio build/bin/folio --prompt-tokens 4096 --streams 1 \\
      --generate-tokens 8
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
METRICS = ("prefill", "decode")


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folio", required=True, help="the program")
    parser.add_argument("--model", default="random:llama-135m",
                        help="a llama, as folio bench takes it "
                             "(default: %(default)s)")
    parser.add_argument("--types", default="bf16:bf16",
                        help="pairs of Folio's --weights-dtype and the file's "
                             "--gguf-type (default: %(default)s)")
    parser.add_argument("--streams", default="1,4,16,32",
                        help="default: %(default)s")
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--generate-tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-batch", type=int, default=512,
                        help="most tokens of the peer's batches, its n_batch "
                             "and n_ubatch (default: %(default)s)")
    parser.add_argument("--folio-flags", default="",
                        help="more flags for folio bench, with spaces between")
    parser.add_argument("--packages", default="~/.cache/folio-bench-peers",
                        help="where the npm package is or gets installed "
                             "(default: %(default)s)")
    parser.add_argument("--wait-for-quiet", type=float, default=0,
                        metavar="SECONDS",
                        help="how long to wait before each program for others "
                             "to be done (default: not at all)")
    parser.add_argument("--json", action="store_true",
                        help="one JSON object a line instead of the table")
    return parser.parse_args()


def install(packages):
    """Installs what package.json names, unless it is there."""
    packages.mkdir(parents=True, exist_ok=True)
    wanted = HERE / "package.json"
    present = packages / "package.json"
    if (packages / "node_modules" / "node-llama-cpp").is_dir() and \
            present.exists() and present.read_text() == wanted.read_text():
        return
    shutil.copy(wanted, present)
    # Optional packages are the same for GPUs and other machines, 600 MB.
    subprocess.run(["npm", "install", "--omit=optional", "--ignore-scripts",
                    "--no-audit", "--no-fund"],
                   cwd=packages, check=True, stdout=sys.stderr)


def json_lines(command):
    """Runs a command and returns the objects that it prints, one a line."""
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE,
                            text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def others_seconds():
    """CPU seconds that all processes but this one's children have taken.

    Counted are only children that have ended.
    """
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, steal = map(
            int, file.readline().split()[1:9])
    all_seconds = (user + nice + system + irq + softirq + steal) / \
        os.sysconf("SC_CLK_TCK")
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return all_seconds - children.ru_utime - children.ru_stime


def others_share(action):
    """Does something; the share of all cores that others took meanwhile."""
    start, before = time.monotonic(), others_seconds()
    action()
    seconds = time.monotonic() - start
    return max(0, others_seconds() - before) / seconds / os.cpu_count()


def wait_for_quiet(most_seconds):
    """Returns after a second in which others took next to nothing."""
    end = time.monotonic() + most_seconds
    while time.monotonic() < end:
        if others_share(lambda: time.sleep(1)) < 0.03:
            return


def rates(line):
    return {metric: line[f"{metric}_tokens_per_second"] for metric in METRICS}


class Comparison:
    """One pair of types: the file, and the rounds of both programs on it."""

    def __init__(self, arguments, types, folder):
        self.arguments = arguments
        self.ours, self.peers = types.split(":")
        self.gguf = folder / f"{self.peers}.gguf"
        self.prompts = folder / "prompts.jsonl"
        self.peer = None
        # Rates by streams; the peer's by streams and flash attention. A list
        # has an entry for each round.
        self.our_rounds = {}
        self.peer_rounds = {}
        self.outside = []
        self.others_shares = []

    def load_flags(self):
        return ["--prompt-tokens", str(self.arguments.prompt_tokens),
                "--generate-tokens", str(self.arguments.generate_tokens),
                "--streams", self.arguments.streams]

    def write_files(self):
        subprocess.run([self.arguments.folio, "bench", "--model",
                        self.arguments.model, "--write-gguf", self.gguf,
                        "--gguf-type", self.peers, "--write-prompts",
                        self.prompts, *self.load_flags()], check=True)

    def run_round(self):
        for program in (self.run_ours, self.run_peer):
            wait_for_quiet(self.arguments.wait_for_quiet)
            self.others_shares.append(others_share(program))

    def run_ours(self):
        lines = json_lines([
            self.arguments.folio, "bench", "--json", "--no-ceiling",
            "--model", self.gguf, "--weights-dtype", self.ours,
            "--threads", str(self.arguments.threads), "--rounds", "1",
            *self.load_flags(), *self.arguments.folio_flags.split()])
        for line in lines:
            self.our_rounds.setdefault(line["streams"], []).append(rates(line))

    def run_peer(self):
        options = {
            "packages": str(self.arguments.packages),
            "gguf": str(self.gguf),
            "prompts": str(self.prompts),
            "streams": [int(n) for n in self.arguments.streams.split(",")],
            "prompt_tokens": self.arguments.prompt_tokens,
            "generate_tokens": self.arguments.generate_tokens,
            "batch": self.arguments.peer_batch,
            "threads": self.arguments.threads,
        }
        self.peer, *lines = json_lines(
            ["node", HERE / "peer.mjs", json.dumps(options)])
        for line in lines:
            key = (line["streams"], line["flash_attention"])
            self.peer_rounds.setdefault(key, []).append(rates(line))
            self.outside.append(line["outside_decode_share"])

    def rows(self):
        """For each number of streams and metric, both medians and the ratio."""
        rows = []
        for streams, ours in self.our_rounds.items():
            for metric in METRICS:
                our_rates = [rates[metric] for rates in ours]
                candidates = {
                    flash: [rates[metric]
                            for rates in self.peer_rounds[streams, flash]]
                    for flash in (True, False)}
                flash = max(candidates,
                            key=lambda f: statistics.median(candidates[f]))
                peers = candidates[flash]
                rows.append({
                    "metric": metric, "streams": streams,
                    "ours": self.ours, "peers": self.peers,
                    "our_tokens_per_second": statistics.median(our_rates),
                    "peer_tokens_per_second": statistics.median(peers),
                    "peer_flash_attention": flash,
                    "ratio": statistics.median(
                        ours / peer for ours, peer in zip(our_rates, peers)),
                    "ratios": [ours / peer
                               for ours, peer in zip(our_rates, peers)],
                })
        return rows


def best_rows(rows):
    """The fastest of ours against the fastest of the peer's."""
    best = []
    for key in dict.fromkeys((row["metric"], row["streams"]) for row in rows):
        same = [row for row in rows if (row["metric"], row["streams"]) == key]
        ours = max(same, key=lambda row: row["our_tokens_per_second"])
        peer = max(same, key=lambda row: row["peer_tokens_per_second"])
        best.append({
            **ours,
            "peers": peer["peers"],
            "peer_tokens_per_second": peer["peer_tokens_per_second"],
            "peer_flash_attention": peer["peer_flash_attention"],
            "ratio": ours["our_tokens_per_second"] /
                     peer["peer_tokens_per_second"],
            "ratios": [],
            "best": True,
        })
    return best


def print_table(rows):
    print(f"{'':8} {'streams':>7}  {'Folio':>6} {'tokens/s':>9}  "
          f"{'peer':>5} {'tokens/s':>9} {'flash':>5}  {'ratio':>6}  of rounds")
    for row in rows:
        spread = f"{min(row['ratios']):.2f} to {max(row['ratios']):.2f}" \
            if row["ratios"] else "best of each"
        print(f"{row['metric']:8} {row['streams']:7}  {row['ours']:>6} "
              f"{row['our_tokens_per_second']:9.1f}  {row['peers']:>5} "
              f"{row['peer_tokens_per_second']:9.1f} "
              f"{'on' if row['peer_flash_attention'] else 'off':>5}  "
              f"{row['ratio']:6.2f}  {spread}")


def main():
    arguments = parse_arguments()
    arguments.packages = pathlib.Path(arguments.packages).expanduser()
    install(arguments.packages)
    rows = []
    outside = []
    others = []
    for types in arguments.types.split(","):
        with tempfile.TemporaryDirectory(prefix="folio-peers-") as folder:
            comparison = Comparison(arguments, types, pathlib.Path(folder))
            comparison.write_files()
            for _ in range(arguments.rounds):
                comparison.run_round()
        rows += comparison.rows()
        outside += comparison.outside
        others += comparison.others_shares
    if "," in arguments.types:
        rows += best_rows(rows)
    about = {
        "model": arguments.model,
        "prompt_tokens": arguments.prompt_tokens,
        "generate_tokens": arguments.generate_tokens,
        "threads": arguments.threads,
        "rounds": arguments.rounds,
        "others_share_median": statistics.median(others),
        "others_share_most": max(others),
        "folio_flags": arguments.folio_flags,
        "peer": {**comparison.peer, "n_batch": arguments.peer_batch,
                 "n_ubatch": arguments.peer_batch, "kv_type": "f16",
                 "outside_decode_share": statistics.median(outside)},
    }
    if arguments.json:
        for line in (about, *rows):
            print(json.dumps(line))
        return
    peer = about.pop("peer")
    for key, value in {**about, **peer}.items():
        print(f"{key}: {value}")
    print_table(rows)


if __name__ == "__main__":
    main()
