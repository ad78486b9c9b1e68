"""What the model is worth: perplexity beside two baselines, completions and
what they copy, and the data that tests compare another implementation with."""

import collections
import functools
import json
import math
import pathlib
import random
import re
import sys

import torch

from bible import Corpus, read_chapters
from bpe import BEGIN_ID, END_ID, VOCAB_SIZE, Tokenizer
from llama import SEED, make_model, read_model, rounded, with_weights
from runs import LONG_ROW, SHORT_ROW, runs_of, stream_of


@torch.no_grad()
def logprobs_of(model, ids, product_type=torch.float32):
    """The log-probability of each of `ids`, given BEGIN and those before."""
    tokens = torch.tensor([[BEGIN_ID, *ids]])
    logprobs = model(tokens[:, :-1], product_type).log_softmax(dim=-1)
    return logprobs[0].gather(1, tokens[0, 1:, None])[:, 0].tolist()


class Bigrams:
    """A table of bigrams over the same tokens, with the smoothing of Witten
    and Bell (1991): a token followed by many different ones leans more on the
    single tokens' frequencies."""

    def __init__(self, stream):
        self._singles = collections.Counter(stream)
        self._total = len(stream) + VOCAB_SIZE
        self._pairs = collections.Counter(zip(stream, stream[1:]))
        self._followers = collections.Counter(
            first for first, _ in self._pairs)

    def _probability(self, first, second):
        single = (self._singles[second] + 1) / self._total
        kinds = self._followers[first]
        return ((self._pairs[first, second] + kinds * single) /
                (self._singles[first] + kinds) if kinds else single)

    def logprobs_of(self, ids):
        return [math.log(self._probability(first, second))
                for first, second in zip([BEGIN_ID, *ids], ids)]


def make_bigrams(corpus, tokenizer):
    """Counts what the model sees in an epoch."""
    return Bigrams(stream_of(corpus.train, tokenizer, SHORT_ROW,
                             random.Random(SEED)))


def make_untrained():
    """The model before its first step, rounded like the trained one."""
    return with_weights(rounded(make_model().state_dict()))


class Score:
    """How well texts were predicted, whatever predicted them."""

    def __init__(self):
        self.nats, self.tokens, self.words, self.bytes = 0.0, 0, 0, 0

    def add(self, text, logprobs):
        self.nats -= sum(logprobs)
        self.tokens += len(logprobs)
        self.words += len(text.split())
        self.bytes += len(text)

    @property
    def per_token(self):
        return self.nats / self.tokens

    def __str__(self):
        return (f"{math.exp(self.per_token):11.2f}"
                f"{math.exp(self.nats / self.words):16.1f}"
                f"{self.nats / self.bytes / math.log(2):13.3f}")


def score(logprobs_of_ids, tokenizer, chapters, limit):
    """Scores the chapters, cut into runs of fewer than `limit` tokens."""
    result = Score()
    for chapter in chapters:
        for text in runs_of(chapter, tokenizer, limit - 2, limit - 2):
            result.add(text, logprobs_of_ids(tokenizer.encode(text)))
    return result


def evaluate(args):
    """Prints the table of perplexities."""
    corpus, tokenizer = Corpus(), Tokenizer.read(args.model)
    trained = functools.partial(logprobs_of, read_model(args.model))
    untrained = functools.partial(logprobs_of, make_untrained())
    bigrams = make_bigrams(corpus, tokenizer).logprobs_of
    # As many chapters that were trained on: how much was learnt by heart.
    seen = corpus.train[::len(corpus.train) // len(corpus.test)]
    print("perplexity:                       a token          a word  "
          "bits a byte")
    for name, logprobs_of_ids, chapters, limit in [
            ("trained", trained, corpus.test, LONG_ROW),
            (f"trained, runs of {SHORT_ROW}", trained, corpus.test, SHORT_ROW),
            ("bigram table", bigrams, corpus.test, LONG_ROW),
            ("untrained", untrained, corpus.test, LONG_ROW),
            ("trained, on training text", trained, seen, LONG_ROW)]:
        result = score(logprobs_of_ids, tokenizer, chapters, limit)
        print(f"{name:30}{result}", flush=True)


class Book:
    """Finds what a text has in common with the whole book; the held-out
    chapters too, so that nothing found is new by accident of the split."""

    def __init__(self, chapters):
        self._text = self._plain(" ".join(c.text for c in chapters))

    @staticmethod
    def _plain(text):
        """The words alone, in lower case, a space on either side of each."""
        words = re.findall("[a-z]+", text.lower().replace("'", ""))
        return f" {' '.join(words)} "

    def longest_copy(self, text):
        """The longest run of words that is also in the book."""
        words, best = self._plain(text).split(), []
        for first in range(len(words)):
            last = first + len(best) + 1
            while (last <= len(words) and
                   f" {' '.join(words[first:last])} " in self._text):
                best = words[first:last]
                last += 1
        return best


@torch.no_grad()
def continuation(model, ids, count, temperature=0.0, seed=0):
    """Up to `count` tokens after BEGIN and `ids`: the likeliest ones if
    `temperature` is 0, sampled otherwise. Also the smallest margin between
    the two likeliest logits on the way."""
    generator = torch.Generator().manual_seed(seed)
    tokens, margin = [BEGIN_ID, *ids], math.inf
    while len(tokens) < 1 + len(ids) + count:
        logits = model(torch.tensor([tokens]))[0, -1]
        top = logits.topk(2)
        margin = min(margin, float(top.values[0] - top.values[1]))
        token = (int(top.indices[0]) if temperature == 0 else
                 int(torch.multinomial((logits / temperature).softmax(dim=0),
                                       1, generator=generator)))
        if token == END_ID:
            break
        tokens.append(token)
    return tokens[1 + len(ids):], margin


def complete(args):
    """Prints completions, each with the longest run that it shares with the
    book."""
    tokenizer, model = Tokenizer.read(args.model), read_model(args.model)
    book = Book(read_chapters())
    for prompt in args.prompts or [sys.stdin.read().strip()]:
        for seed in range(args.samples if args.temperature > 0 else 1):
            ids, _ = continuation(model, tokenizer.encode(prompt),
                                  args.max_tokens, args.temperature, seed)
            text = prompt + tokenizer.decode(ids)
            copy = book.longest_copy(text)
            print(f"{text}\n  [temperature {args.temperature}, seed {seed}; "
                  f"{len(copy)} words together are in the book: "
                  f"{' '.join(copy)}]", flush=True)


GOLDEN = (pathlib.Path(__file__).resolve().parents[3] / "tests" / "golden" /
          "folio-tiny")
GOLDEN_TOKENS = 200
GREEDY_IDS = 48
# Openings whose greedy completions leave no step nearly undecided, so that
# other ways of rounding agree.
GOLDEN_PROMPTS = ["And the woman said,", "O LORD,", "On the morrow,"]


def write_golden(args):
    """Writes what a test needs to check another implementation: passages of
    five test chapters with their tokens and log-probabilities, and greedy
    completions."""
    corpus, tokenizer = Corpus(), Tokenizer.read(args.model)
    trained, untrained = read_model(args.model), make_untrained()
    bigrams = make_bigrams(corpus, tokenizer)

    def mean(logprobs):
        return round(sum(logprobs) / len(logprobs), 6)

    def passage(chapter):
        text = runs_of(chapter, tokenizer, GOLDEN_TOKENS, GOLDEN_TOKENS)[0]
        ids = tokenizer.encode(text)
        logprobs = logprobs_of(trained, ids)
        return {"chapter": chapter.name, "text": text, "ids": ids,
                "logprobs": [round(logprob, 6) for logprob in logprobs],
                "mean_logprob": mean(logprobs),
                "bigram_mean_logprob": mean(bigrams.logprobs_of(ids)),
                "untrained_mean_logprob": mean(logprobs_of(untrained, ids))}

    def completion(prompt):
        prompt_ids = tokenizer.encode(prompt)
        ids, margin = continuation(trained, prompt_ids, GREEDY_IDS)
        return {"prompt": prompt, "prompt_ids": prompt_ids, "ids": ids,
                "text": tokenizer.decode(ids), "ended": len(ids) < GREEDY_IDS,
                "min_margin": round(margin, 6)}

    def lines(cases):
        return ",\n".join(json.dumps(case) for case in cases)

    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / "cases.json").write_text(
        '{"held_out": [\n' + lines(map(passage, corpus.test[4::9])) +
        '\n], "greedy": [\n' + lines(map(completion, GOLDEN_PROMPTS)) +
        "\n]}\n")
