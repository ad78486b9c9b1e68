"""Chapters cut into the runs of verses that are trained on and scored."""

from bpe import BEGIN_ID, END_ID
from llama import CONFIG

# All epochs but the last are in short rows, which hold most of what there is
# to learn and are cheap; the last is in rows of the declared context, so that
# far positions are as good as near ones.
SHORT_ROW = 256
LONG_ROW = CONFIG["max_position_embeddings"]


def runs_of(chapter, tokenizer, limit, first_limit):
    """The chapter's text cut between verses into runs of `limit` tokens at
    most, the first one of `first_limit` (give or take a token, since a word
    that opens a text lacks its space)."""
    runs, room = [[]], first_limit
    for verse in chapter.verses:
        size = len(tokenizer.encode(" " + verse))
        if runs[-1] and size > room:
            runs.append([])
            room = limit
        room -= size
        runs[-1].append(verse)
    return [" ".join(run) for run in runs]


def stream_of(chapters, tokenizer, limit, generator):
    """One epoch's tokens: the chapters in runs, cut at other places in each
    epoch, shuffled. Each run opens with BEGIN, so that a text may begin where
    any verse does; only a chapter's last closes with END."""
    runs = []
    for chapter in chapters:
        texts = runs_of(chapter, tokenizer, limit,
                        generator.randint(1, limit))
        ids = [[BEGIN_ID, *tokenizer.encode(text)] for text in texts]
        ids[-1].append(END_ID)
        runs += ids
    generator.shuffle(runs)
    return [token for run in runs for token in run]
