#!/usr/bin/python3 -B
"""Makes the model of this folder: a small Llama and its byte-level BPE
tokenizer, trained on the King James Bible.

Needs the Debian packages python3-torch, bible-kjv and bible-kjv-text; neither
building Folio nor testing it needs any of them. The text is in the public
domain: its copyright has expired (/usr/share/doc/bible-kjv-text/copyright).

Randomness is seeded. The same PyTorch on the same kind of processor with as
many threads gives the same files; another one rounds otherwise, and gives
weights that are as good, but not the same.
"""

import argparse
import ctypes
import functools
import math
import pathlib
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

from bible import Corpus
from bpe import Tokenizer
from evaluation import complete, evaluate, logprobs_of, score, write_golden
from llama import SEED, export, make_model, rounded, with_weights
from runs import LONG_ROW, SHORT_ROW, stream_of

HERE = pathlib.Path(__file__).resolve().parent

EPOCHS = 5              # too few to learn the text by heart
FALLING_EPOCHS = 2      # of them, at the end; see learning_rate()
TOKENS_PER_STEP = 4096  # about 250 steps an epoch
PEAK_RATE = 2e-3        # small models bear large rates
WARMUP_STEPS = 100
WEIGHT_DECAY = 0.1      # of matrices; the gains of norms are left alone
BETAS = (0.9, 0.95)     # a short memory of squares, as the steps are few
GRADIENT_NORM = 1.0


def row_length(epoch, epochs):
    """Of the 0-based `epoch` of so many; the last is in long rows."""
    return LONG_ROW if epoch == epochs - 1 else SHORT_ROW


def batches_of(stream, length):
    """Pairs (inputs, targets), each [rows, length]. Rows ignore where runs
    begin: BEGIN alone tells the model to forget what came before."""
    tokens = torch.tensor(stream)
    rows = TOKENS_PER_STEP // length
    return [(tokens[first:first + TOKENS_PER_STEP].view(rows, length),
             tokens[first + 1:first + TOKENS_PER_STEP + 1].view(rows, length))
            for first in range(0, len(tokens) - TOKENS_PER_STEP,
                               TOKENS_PER_STEP)]


def learning_rate(epoch, epochs, step):
    """At `epoch`, which includes the fraction, of so many: a linear warm-up,
    the peak, then a straight fall to nothing in the last epochs. Where the
    fall begins may be decided late: see --resume."""
    fall = min(1, (epochs - epoch) / FALLING_EPOCHS)
    return PEAK_RATE * fall * min(1, (step + 1) / WARMUP_STEPS)


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    gains = [p for p in model.parameters() if p.dim() == 1]
    return torch.optim.AdamW(
        [{"params": matrices, "weight_decay": WEIGHT_DECAY},
         {"params": gains, "weight_decay": 0.0}], lr=PEAK_RATE, betas=BETAS)


def train_step(model, optimizer, inputs, targets, rate):
    """Returns the loss. Products are in bfloat16, which this processor does
    many times faster; weights, gradients and moments are float32."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    logits = model(inputs, torch.bfloat16)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
    optimizer.step()
    return float(loss)


class Trainer:
    """The state that an epoch changes."""

    def __init__(self):
        self.model = make_model()
        self._optimizer = make_optimizer(self.model)
        self._generator = random.Random(SEED)
        self.epoch, self._step, self.best = 0, 0, math.inf

    def save(self, path):
        torch.save([self.model.state_dict(), self._optimizer.state_dict(),
                    self._generator.getstate(), self.epoch, self._step,
                    self.best], path)

    def load(self, path):
        (model, optimizer, generator, self.epoch, self._step,
         self.best) = torch.load(path)
        self.model.load_state_dict(model)
        self._optimizer.load_state_dict(optimizer)
        self._generator.setstate(generator)

    def train_epoch(self, chapters, tokenizer, epochs):
        """Trains epoch number `self.epoch` of `epochs`; returns the loss."""
        length = row_length(self.epoch, epochs)
        batches = batches_of(stream_of(chapters, tokenizer, length,
                                       self._generator), length)
        losses = []
        for i, (inputs, targets) in enumerate(batches):
            rate = learning_rate(self.epoch + i / len(batches), epochs,
                                 self._step)
            losses.append(train_step(self.model, self._optimizer, inputs,
                                     targets, rate))
            self._step += 1
        self.epoch += 1
        return sum(losses) / len(losses)


def train(args):
    """Trains, and after each epoch that is the best so far on the validation
    chapters, with weights rounded as they are stored, writes the files."""
    corpus = Corpus()
    tokenizer = Tokenizer.learn(chapter.text for chapter in corpus.train)
    trainer = Trainer()
    if args.resume:
        trainer.load(args.resume)
    start = time.time()
    while trainer.epoch < args.epochs:
        loss = trainer.train_epoch(corpus.train, tokenizer, args.epochs)
        weights = rounded(trainer.model.state_dict())
        validation = score(
            functools.partial(logprobs_of, with_weights(weights),
                              product_type=torch.bfloat16),
            tokenizer, corpus.validation, SHORT_ROW).per_token
        print(f"epoch {trainer.epoch} of {args.epochs}: loss {loss:.4f}, "
              f"validation {validation:.4f}, {time.time() - start:.0f} s",
              flush=True)
        if validation < trainer.best:
            trainer.best = validation
            export(args.model, tokenizer, weights)
        if args.checkpoints:
            trainer.save(args.checkpoints / f"epoch-{trainer.epoch}.pt")


def prepare_torch():
    # Keeps glibc from returning each large tensor to the system and asking
    # for it again, page by page, which would cost more than the arithmetic:
    # no separate mappings, no trimming, one arena (constants of malloc.h).
    m_trim_threshold, m_mmap_max, m_arena_max = -1, -4, -8
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(m_mmap_max, 0)
    mallopt(m_trim_threshold, 2**31 - 1)
    mallopt(m_arena_max, 1)
    # Attention's weights fall below the smallest normal number all the time,
    # and processors are slow with what is smaller.
    torch.set_flush_denormal(True)
    torch.set_num_threads(2)


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name, run, summary):
        command = commands.add_parser(
            name, help=summary, description=summary,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        command.add_argument("--model", type=pathlib.Path, default=HERE,
                             help="the folder of the model's files")
        command.set_defaults(run=run)
        return command

    command = add("train", train, "train a model and write its files")
    command.add_argument("--epochs", type=int, default=EPOCHS)
    command.add_argument("--checkpoints", type=pathlib.Path,
                         help="a folder for the state after each epoch")
    command.add_argument("--resume", type=pathlib.Path,
                         help="a checkpoint to go on from; with another "
                         "number of epochs too, if it was made before the "
                         "rate began to fall")
    add("evaluate", evaluate, "print the perplexity of held-out chapters")
    command = add("complete", complete, "complete openings, and tell how many "
                  "consecutive words are the book's")
    command.add_argument("prompts", nargs="*", metavar="PROMPT",
                         help="an opening; standard input if none is given")
    command.add_argument("--max-tokens", type=int, default=56)
    command.add_argument("--temperature", type=float, default=0.0)
    command.add_argument("--samples", type=int, default=3,
                         help="completions of each opening, if sampled")
    add("golden", write_golden, "write tests/golden/folio-tiny/cases.json")
    return parser.parse_args()


def main():
    args = parse_arguments()
    prepare_torch()
    args.run(args)


if __name__ == "__main__":
    main()
