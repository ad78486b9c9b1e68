"""ONEDNN_MAX_CPU_ISA caps all kernels: on AVX2 the same tokens come out, with
logprobs near those of the machine's best instructions."""

import json
import os
import subprocess
import sys
import unittest

FOLIO = sys.argv.pop(1)
PROMPT = "In the beginning God created the heaven and the earth. And"


def generate(cap, *flags, name="ONEDNN_MAX_CPU_ISA"):
    env = dict(os.environ)
    env.pop("ONEDNN_MAX_CPU_ISA", None)
    env.pop("DNNL_MAX_CPU_ISA", None)
    if cap:
        env[name] = cap
    run = subprocess.run(
        [FOLIO, "generate", "--prompt", PROMPT, "--max-tokens", "32",
         "--logprobs", "5", "--json", *flags],
        env=env, capture_output=True, text=True, check=True)
    result = json.loads(run.stdout.splitlines()[-1])
    tokens = result["token_ids"]
    logprobs = [token["logprob"] for token in result["logprobs"]]
    assert len(tokens) == len(logprobs) == 32, run.stdout
    return tokens, logprobs


class InstructionSetTest(unittest.TestCase):

    def test_f32_on_avx2_is_within_a_thousandth(self):
        best, best_logprobs = generate(None, "--weights-dtype", "f32")
        avx2, avx2_logprobs = generate("AVX2", "--weights-dtype", "f32")
        self.assertEqual(best, avx2)
        for one, other in zip(best_logprobs, avx2_logprobs):
            self.assertAlmostEqual(one, other, delta=1e-3)

    def test_int8_on_avx2_differs_by_roundings_alone(self):
        # Products of integers are exact with any instructions; the rest is
        # f32, and may move an activation to the next of its 8-bit codes.
        best, best_logprobs = generate(None, "--weights-dtype", "int8")
        avx2, avx2_logprobs = generate("AVX2", "--weights-dtype", "int8")
        self.assertEqual(best[:8], avx2[:8])
        for one, other in zip(best_logprobs[:8], avx2_logprobs[:8]):
            self.assertAlmostEqual(one, other, delta=0.05)

    def test_no_dot_products_of_bf16_below_their_cap(self):
        # Machines with VNNI but without BF16 attend as those with neither.
        flags = ("--weights-dtype", "f32", "--kv-dtype", "bf16")
        self.assertEqual(generate("AVX512_CORE", *flags),
                         generate("AVX512_CORE_VNNI", *flags))

    def test_the_cap_is_read_as_onednn_reads_it(self):
        flags = ("--weights-dtype", "f32")
        self.assertEqual(generate("AVX2", *flags), generate("avx2", *flags))
        self.assertEqual(generate("AVX2", *flags),
                         generate("AVX2", *flags, name="DNNL_MAX_CPU_ISA"))

    def test_batch_and_threads_change_nothing_on_avx2(self):
        for dtype in ("f32", "int8", "int4"):
            outputs = [
                generate("AVX2", "--weights-dtype", dtype, "--threads", threads,
                         "--max-batch-tokens", batch,
                         "--max-batch-sequences", "4")
                for threads, batch in (("1", "512"), ("2", "7"))]
            self.assertEqual(*outputs)


if __name__ == "__main__":
    unittest.main()
