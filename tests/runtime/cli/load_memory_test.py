"""What loading a model takes: at no time more than 1.2 times the converted
weights and the KV pool, beside what the process takes with a tiny model.

Usage: load_memory_test.py FOLIO
"""

import json
import os
import struct
import sys
import tempfile
import unittest

from folio_binary import Folio

LAYERS_MOSTLY = {
    "architectures": ["LlamaForCausalLM"], "vocab_size": 16000,
    "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4,
    "max_position_embeddings": 512}
# Its embedding is read twice: to be looked up, and to be multiplied with.
EMBEDDING_MOSTLY = LAYERS_MOSTLY | {
    "vocab_size": 48000, "num_hidden_layers": 1, "tie_word_embeddings": True}
POOL_BYTES = 16 << 20
MAX_FACTOR = 1.2

folio = None


def shapes(config):
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    kv = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    yield "model.embed_tokens", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        for name, shape in {
                "input_layernorm": (hidden,),
                "self_attn.q_proj": (hidden, hidden),
                "self_attn.k_proj": (kv, hidden),
                "self_attn.v_proj": (kv, hidden),
                "self_attn.o_proj": (hidden, hidden),
                "post_attention_layernorm": (hidden,),
                "mlp.gate_proj": (ffn, hidden), "mlp.up_proj": (ffn, hidden),
                "mlp.down_proj": (hidden, ffn)}.items():
            yield f"model.layers.{layer}.{name}", shape
    yield "model.norm", (hidden,)
    if not config.get("tie_word_embeddings"):
        yield "lm_head", (config["vocab_size"], hidden)


def write_model(config, folder):
    """A Llama of bf16 numbers from 2^-7 to 2^-6, so that logits are finite."""
    with open(os.path.join(folder, "config.json"), "w") as file:
        json.dump(config, file)
    header, size = {}, 0
    for name, shape in shapes(config):
        begin, elements = size, 1
        for dimension in shape:
            elements *= dimension
        size += 2 * elements
        header[name + ".weight"] = {"dtype": "BF16", "shape": shape,
                                    "data_offsets": [begin, size]}
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while size > 0:
            count = min(size, 16 << 20)
            numbers = bytearray(b"\x3c" * count)
            numbers[::2] = os.urandom(count // 2)
            file.write(numbers)
            size -= count


def peak_bytes(*args):
    """The most resident memory of a run that generates one token."""
    command = [folio.path, "generate", "--token-ids", "1", "--max-tokens", "1",
               "--kv-pool", str(POOL_BYTES), "--max-batch-tokens", "32", *args]
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, command
    return usage.ru_maxrss << 10


class LoadMemoryTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # First of all: a child's peak begins with that of who starts it, and
        # writing models takes more than a tiny model does.
        cls.base = peak_bytes("--model", "random:") - POOL_BYTES

    def test_layers_mostly(self):
        self.check(LAYERS_MOSTLY)

    def test_embedding_mostly(self):
        self.check(EMBEDDING_MOSTLY)

    def check(self, config):
        with tempfile.TemporaryDirectory() as folder:
            write_model(config, folder)
            for dtype in ("f32", "bf16"):
                types = ("--weights-dtype", dtype)
                (line,) = folio.json_lines("inspect", folder, *types)
                weights = line["weights"]["bytes"]
                peak = peak_bytes("--model", folder, *types)
                factor = (peak - self.base - POOL_BYTES) / weights
                print(f"{dtype}: {weights >> 20} MiB of weights, loading peaks "
                      f"at {factor:.3f} times that", flush=True)
                self.assertLess(factor, MAX_FACTOR)
                # They do have to be there.
                self.assertGreater(factor, 0.95)


if __name__ == "__main__":
    folio = Folio(sys.argv[1])
    unittest.main(argv=sys.argv[:1], verbosity=2)
