#!/usr/bin/python3
"""TinyCausalLM over the wire against exact arithmetic in float32.

Usage: wire_reference_test.py FOLIO SHARED_DIR (with the stubs in PYTHONPATH)
Ends with status 77 (skipped) where the reference data is not there.
"""

import json
import os
import sys
import unittest

from wire_client import Server, tokens_of

from folio.v1 import generation_pb2 as generation

folio = None  # The binary.
model = None


class ReferenceTest(unittest.TestCase):
    """Against what PyTorch makes of the same weights."""

    def test_greedy_tokens_and_prompt_logprobs(self):
        server = Server(folio, '--model', model)
        with open(os.path.join(model, 'cases.json'), encoding='utf-8') as f:
            cases = json.load(f)
        # Float32 sums in another order differ by a few 1e-6 at most here.
        tolerance = 1e-4
        for case in cases:
            responses = server.generate(
                token_ids=generation.TokenIds(ids=case['prompt']),
                max_tokens=len(case['greedy']),
                sampling=generation.SamplingParams(logprobs=5,
                                                   prompt_logprobs=True))
            self.assertGreater(case['greedy_min_margin'], 2 * tolerance)
            self.assertEqual(tokens_of(responses), case['greedy'])
            prompt = [s.logprob for r in responses for s in r.prompt_logprobs]
            self.assertEqual(len(prompt), len(case['prompt_logprobs']))
            for actual, expected in zip(prompt, case['prompt_logprobs']):
                self.assertAlmostEqual(actual, expected, delta=tolerance)
            first = next(s for r in responses for s in r.logprobs)
            for top, expected in zip(first.top, case['top5_logprobs']):
                self.assertAlmostEqual(top.logprob, expected, delta=tolerance)
        server.channel.close()
        self.assertEqual(server.close(), 0)


if __name__ == '__main__':
    folio = sys.argv[1]
    model = os.path.join(sys.argv[2], 'reference', 'tiny-causal-lm')
    if not os.path.isdir(model):
        print(f'skipped: there is no {model}')
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
