"""The text: chapters of the King James Bible, and their division into what is
trained on and what is held out."""

import re
import subprocess
import sys


class Chapter:
    """A chapter's name ("Ge1") and its verses, without numbers."""

    def __init__(self, name):
        self.name = name
        self.verses = []

    @property
    def text(self):
        return " ".join(self.verses)


def clean(verse):
    """Undoes the few slips of the package's text: doubled and missing spaces,
    and a space before a question mark. That compound names have no hyphens
    ("MeribahKadesh") is left as it is."""
    verse = re.sub(r"([,;:?!])(?=[A-Za-z])", r"\1 ", verse)
    verse = re.sub(r"\s+([,;:?!.])", r"\1", verse)
    return " ".join(verse.split())


def read_chapters():
    """Every chapter, in order, from the program `bible` of bible-kjv."""
    lines = subprocess.run(["bible", "-f", "ge1:1-re22:21"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    chapters = []
    for line in lines:
        name, verse = re.fullmatch(r"(\w+):\d+ (.*)", line).groups()
        if not chapters or chapters[-1].name != name:
            chapters.append(Chapter(name))
        chapters[-1].verses.append(clean(verse))
    if (len(chapters), len(lines)) != (1189, 31102):
        sys.exit(f"bible printed {len(lines)} verses in {len(chapters)} "
                 "chapters; expected 31102 in 1189")
    if not all(chapter.text.isascii() for chapter in chapters):
        sys.exit("the text is expected to be ASCII; PRE_TOKEN relies on it")
    return chapters


class Corpus:
    """The chapters in three parts. Of the 1189, in the order of the books,
    every 25th is held out for the final perplexity (`test`), and every 50th,
    others, for choosing the epoch to keep (`validation`). Whole chapters,
    because a verse's neighbours give it away."""

    def __init__(self):
        self.train, self.validation, self.test = [], [], []
        for ordinal, chapter in enumerate(read_chapters()):
            if ordinal % 25 == 24:
                self.test.append(chapter)
            elif ordinal % 50 == 12:
                self.validation.append(chapter)
            else:
                self.train.append(chapter)


if __name__ == "__main__":
    # What no training has seen, a chapter in a line.
    for held_out in Corpus().test:
        print(held_out.text)
