"""The example of a client in Python against the real server.

Usage: python_client_test.py FOLIO SOURCE_DIR
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import client_checks


def documented_commands(example):
    """How the example says that its stubs are made in $PYTHONPATH."""
    commands = re.search(r"^  mkdir .*?(?=^  runtime/)",
                         example.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    # In Python's own text, a backslash is two.
    return commands[0].replace("\\\\", "\\")


def main(folio, source):
    example = pathlib.Path(source) / "runtime" / "examples" / "python" / "generate.py"
    with tempfile.TemporaryDirectory() as stubs:
        env = {"PYTHONPATH": stubs}
        client = client_checks.Example([sys.executable, "-B", example], env)
        subprocess.run(["bash", "-ec", documented_commands(example)], cwd=source,
                       env=client.env, check=True)
        client_checks.check_all(folio, client)


if __name__ == "__main__":
    main(*sys.argv[1:])
