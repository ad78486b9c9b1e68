"""Models through `folio generate` against exact arithmetic in float32.

Usage: reference_test.py FOLIO SHARED_DIR
Ends with status 77 (skipped) where the reference data is not there.
"""

import json
import os
import sys
import unittest

from folio_binary import Folio, Server

# What the project promises: the oracle sums in another order.
TOLERANCE = 2e-4
GREEDY_TOKENS = 48

FAMILIES = ("tiny-causal-lm", "llama-gqa", "llama-mqa-tied", "mistral-window",
            "qwen2", "qwen3", "gpt2")

folio = None
reference = None


class ReferenceTest(unittest.TestCase):
    def test_in_the_process(self):
        for family in FAMILIES:
            self.check_all(family, "--model", os.path.join(reference, family),
                           "--weights-dtype", "f32")

    def test_without_a_cache(self):
        for family in ("tiny-causal-lm", "mistral-window"):
            self.check_all(family, "--model", os.path.join(reference, family),
                           "--weights-dtype", "f32", "--no-cache")

    def test_through_a_server(self):
        for family in ("tiny-causal-lm", "qwen3"):
            with Server(folio, "--model", os.path.join(reference, family),
                        "--weights-dtype", "f32") as server:
                self.check_all(family, "--server", server.address)

    def check_all(self, family, *args):
        path = os.path.join(reference, family, "cases.json")
        with open(path, encoding="utf-8") as file:
            cases = json.load(file)
        self.assertGreater(len(cases), 0)
        for case in cases:
            with self.subTest(family, prompt_tokens=len(case["prompt"])):
                self.check(case, args)

    def check(self, case, args):
        last = folio.json_lines(
            "generate", *args, "--token-ids",
            ",".join(map(str, case["prompt"])), "--max-tokens",
            str(GREEDY_TOKENS), "--ignore-eos", "--logprobs", "5",
            "--prompt-logprobs")[-1]

        self.assertEqual(len(case["greedy"]), GREEDY_TOKENS)
        if case["greedy_min_margin"] >= TOLERANCE:
            self.assertEqual(last["token_ids"], case["greedy"])
        self.assertEqual(len(last["token_ids"]), GREEDY_TOKENS)

        self.assertIsNone(last["prompt_logprobs"][0])
        rest = last["prompt_logprobs"][1:]
        self.assertEqual([e["token_id"] for e in rest], case["prompt"][1:])
        self.assert_close([e["logprob"] for e in rest], case["prompt_logprobs"])

        first = last["logprobs"][0]["top"]
        self.assert_close([e["logprob"] for e in first], case["top5_logprobs"])
        expected = dict(zip(case["top5_ids"], case["top5_logprobs"]))
        for entry in first:  # Near ties may stand in another order.
            if entry["token_id"] in expected:
                self.assert_close([entry["logprob"]],
                                  [expected.pop(entry["token_id"])])
        for logprob in expected.values():  # Only the last may have a rival.
            self.assert_close([logprob], case["top5_logprobs"][-1:])

    def assert_close(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for ours, exact in zip(found, expected):
            self.assertLessEqual(abs(ours - exact), TOLERANCE)


if __name__ == "__main__":
    folio = Folio(sys.argv[1])
    reference = os.path.join(sys.argv[2], "reference")
    if not os.path.isdir(reference):
        print(f"skipped: there is no {reference}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
