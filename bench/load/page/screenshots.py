#!/usr/bin/env python3
"""Pictures of a report's page, as Chromium shows it: whole, 1280 and 400 pixels
wide, light and dark.

Needs Chromium, and of Python nothing but its own library.

Example:
  bench/load/page/screenshots.py report.html pictures/
"""

import argparse
import pathlib

import chromium


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path, help="a report, HTML")
    parser.add_argument("folder", type=pathlib.Path, help="for the pictures")
    parser.add_argument("--drawn-within", type=float, metavar="MS",
                        help="fail when drawing a page takes longer")
    flags = parser.parse_args()
    program = chromium.find_chromium()
    if program is None:
        parser.error("Chromium is not installed (Debian: apt-get install "
                     "chromium)")
    flags.folder.mkdir(parents=True, exist_ok=True)
    slowest = 0.0
    with chromium.Chromium(program) as browser:
        for width in (1280, 400):
            for dark in (False, True):
                browser.look(width, dark)
                browser.open(flags.page)
                name = f"{flags.page.stem}-{width}-{'dark' if dark else 'light'}"
                path = flags.folder / f"{name}.png"
                browser.screenshot(path)
                drawn = float(browser.evaluate(
                    "document.documentElement.dataset.drawnMs"))
                slowest = max(slowest, drawn)
                print(f"{path}: drawn after {drawn:.0f} ms")
    if flags.drawn_within is not None and slowest > flags.drawn_within:
        raise SystemExit(f"It took {slowest:.0f} ms to draw a page, of at most "
                         f"{flags.drawn_within:.0f}")


if __name__ == "__main__":
    main()
