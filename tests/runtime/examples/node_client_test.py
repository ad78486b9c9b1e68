"""The example of a client in Node against the real server.

Usage: node_client_test.py FOLIO SOURCE_DIR CACHE_DIR

Installs its packages into CACHE_DIR, where the next run finds them. Skipped,
with exit status 77, without Node, npm or its registry.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import client_checks

SKIPPED = 77
TIMEOUT_SECONDS = 240


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def find(program):
    path = shutil.which(program)
    if path is None:
        skip(f"{program} is not installed")
    return path


def missing_packages(folder):
    """Those of package.json that are not there in the version it names."""
    wanted = json.loads((folder / "package.json").read_text("utf-8"))
    missing = []
    for name, version in wanted["dependencies"].items():
        manifest = folder / "node_modules" / name / "package.json"
        if (not manifest.exists() or
                json.loads(manifest.read_text("utf-8"))["version"] != version):
            missing.append(f"{name}@{version}")
    return missing


def install(example, cache):
    """Copies the example to `cache`, with its packages beside it."""
    npm = find("npm")
    cache.mkdir(parents=True, exist_ok=True)
    for file in ("generate.mjs", "package.json"):
        shutil.copy(example / file, cache)
    if not missing_packages(cache):
        return
    try:
        run = subprocess.run(
            [npm, "install", "--no-package-lock", "--ignore-scripts",
             "--no-audit", "--no-fund"],
            cwd=cache, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        skip("npm does not get an answer from its registry")
    if run.returncode != 0:
        skip(f"npm can't install {missing_packages(cache)}: {run.stderr.strip()}")
    assert not missing_packages(cache), missing_packages(cache)


def main(folio, source, cache):
    source = pathlib.Path(source)
    cache = pathlib.Path(cache)
    node = find("node")
    install(source / "runtime" / "examples" / "node", cache)
    command = [node, cache / "generate.mjs", "--proto", source / "proto"]
    client_checks.check_all(folio, client_checks.Example(command, {}))


if __name__ == "__main__":
    main(*sys.argv[1:])
