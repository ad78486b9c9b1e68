#!/usr/bin/env python3
"""How long a server takes from its start to its first token.

Writes a random model as a GGUF file (135 M parameters in bf16: 270 MB), reads
it once, so that it is in the file cache, and then, some times over, starts
`folio serve` on it, sends a request as soon as it listens, and waits for the
first token.

Example:
  bench/startup.py --folio build/release/bin/folio
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time


def first_token_seconds(folio, model):
    """From the start of the server to the end of the first answer."""
    start = time.monotonic()
    server = subprocess.Popen([folio, "serve", "--model", model, "--listen",
                               "127.0.0.1:0"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        # It says this when it serves. (Clients that ask meanwhile would take
        # the cores that load the model.)
        line = server.stdout.readline()
        if not line.startswith("listening on "):
            raise SystemExit(f"the server said {line!r}")
        subprocess.run(
            [folio, "generate", "--server", line.split()[-1], "--token-ids",
             "1", "--max-tokens", "1", "--json"],
            capture_output=True, check=True)
        return time.monotonic() - start
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folio", required=True, help="the program")
    parser.add_argument("--model", default="random:llama-135m")
    parser.add_argument("--rounds", type=int, default=5)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.gguf")
        subprocess.run([flags.folio, "bench", "--model", flags.model,
                        "--write-gguf", model, "--gguf-type", "bf16"],
                       check=True, capture_output=True)
        size = len(pathlib.Path(model).read_bytes())
        seconds = [first_token_seconds(flags.folio, model)
                   for _ in range(flags.rounds)]
    print(f"{flags.model}, {size / 1e6:.0f} MB: the first token came "
          f"{statistics.median(seconds):.2f} s after the start "
          f"({min(seconds):.2f} to {max(seconds):.2f} in {len(seconds)} "
          "rounds)")


if __name__ == "__main__":
    main()
