"""The example of an embedded engine, built in the tree, against the binary.

Usage: embed_test.py FOLIO EMBED EMBED_SOURCE
"""

import pathlib
import sys

import embedded


def main(folio, embed, source):
    lines = pathlib.Path(source).read_text("utf-8").splitlines()
    assert len(lines) < 40, f"the example has {len(lines)} lines"
    embedded.check(embed, folio)


if __name__ == "__main__":
    main(*sys.argv[1:])
