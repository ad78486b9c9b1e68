"""A byte-level BPE tokenizer: learning it, using it, and its file."""

import collections
import functools
import heapq
import json
import math
import re

# 2048 tokens: embeddings stay a seventh of the parameters, and the common
# words are whole, which leaves few to misspell.
VOCAB_SIZE = 2048
BEGIN, END = "<|begin|>", "<|end|>"
BEGIN_ID, END_ID = 0, 1

# GPT-2's pattern with \p{L} and \p{N} written for ASCII, which the text is.
PRE_TOKEN = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?[0-9]+"
                       r"| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+")


def byte_characters():
    """GPT-2's printable character for each byte (Radford et al. 2019):
    printable Latin-1 stands for itself, the others follow from U+0100."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte))
            for byte in range(256)]


BYTE_CHARACTERS = byte_characters()


def in_byte_characters(text):
    return [BYTE_CHARACTERS[byte] for byte in text.encode()]


def merged(pieces, pair):
    """`pieces` with every occurrence of `pair`, from the left, made one."""
    result, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i:i + 2]) == pair:
            result.append(pieces[i] + pieces[i + 1])
            i += 2
        else:
            result.append(pieces[i])
            i += 1
    return result


def learn_merges(texts, count):
    """The `count` merges of byte-pair encoding (Sennrich et al. 2016): again
    and again the most frequent pair, of equals the first in the alphabet."""
    words = collections.Counter()
    for text in texts:
        words.update(PRE_TOKEN.findall(text))
    spellings = [in_byte_characters(word) for word in words]
    counts = list(words.values())
    pair_counts = collections.Counter()
    words_with = collections.defaultdict(set)

    def count_pairs(word, sign):
        for pair in zip(spellings[word], spellings[word][1:]):
            pair_counts[pair] += sign * counts[word]
            words_with[pair].add(word)

    for word in range(len(spellings)):
        count_pairs(word, 1)
    # The heap may hold stale counts; a popped entry counts only if it is true.
    heap = [(-n, pair) for pair, n in pair_counts.items()]
    heapq.heapify(heap)
    merges = []
    while len(merges) < count:
        negative_count, pair = heapq.heappop(heap)
        if -negative_count != pair_counts[pair]:
            continue
        merges.append(pair)
        changed = set()
        for word in words_with[pair]:
            changed.update(zip(spellings[word], spellings[word][1:]))
            count_pairs(word, -1)
            spellings[word] = merged(spellings[word], pair)
            count_pairs(word, 1)
            changed.update(zip(spellings[word], spellings[word][1:]))
        for other in changed:
            heapq.heappush(heap, (-pair_counts[other], other))
    return merges


class Tokenizer:
    """Byte-level BPE. Ids: the two special tokens, the 256 bytes, the merges
    in the order learnt."""

    def __init__(self, merges):
        self.merges = [tuple(pair) for pair in merges]
        self.tokens = [BEGIN, END, *BYTE_CHARACTERS,
                       *(first + second for first, second in self.merges)]
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        self._ranks = {pair: i for i, pair in enumerate(self.merges)}
        # Words repeat: with a cache the book takes a second.
        self._encode_word = functools.lru_cache(maxsize=None)(
            self._encode_word)

    @classmethod
    def learn(cls, texts):
        return cls(learn_merges(texts, VOCAB_SIZE - 2 - 256))

    @classmethod
    def read(cls, folder):
        model = json.loads((folder / "tokenizer.json").read_text())["model"]
        return cls(merge.split(" ") for merge in model["merges"])

    def _encode_word(self, word):
        pieces = in_byte_characters(word)
        while len(pieces) > 1:
            pair = min(zip(pieces, pieces[1:]),
                       key=lambda pair: self._ranks.get(pair, math.inf))
            if pair not in self._ranks:
                break
            pieces = merged(pieces, pair)
        return [self._ids[piece] for piece in pieces]

    def encode(self, text):
        return [token for word in PRE_TOKEN.findall(text)
                for token in self._encode_word(word)]

    def decode(self, ids):
        characters = "".join(self.tokens[i] for i in ids if i > END_ID)
        return bytes(BYTE_CHARACTERS.index(c) for c in characters).decode(
            errors="replace")

    def as_json(self):
        """The tokenizer.json of Hugging Face's library `tokenizers`."""
        byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                      "trim_offsets": True, "use_regex": True}
        begin = {"SpecialToken": {"id": BEGIN, "type_id": 0}}

        def text_of(name, type_id):
            return {"Sequence": {"id": name, "type_id": type_id}}

        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": i, "content": token, "single_word": False,
                 "lstrip": False, "rstrip": False, "normalized": False,
                 "special": True} for i, token in enumerate([BEGIN, END])],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [begin, text_of("A", 0)],
                "pair": [begin, text_of("A", 0), text_of("B", 1)],
                "special_tokens": {BEGIN: {"id": BEGIN, "ids": [BEGIN_ID],
                                           "tokens": [BEGIN]}}},
            "decoder": byte_level,
            "model": {
                "type": "BPE", "dropout": None, "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None, "fuse_unk": False,
                "byte_fallback": False,
                "vocab": self._ids,
                "merges": [" ".join(pair) for pair in self.merges]},
        }
