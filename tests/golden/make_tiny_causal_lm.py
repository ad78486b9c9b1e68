#!/usr/bin/python3
"""Makes tests/golden/tiny-causal-lm: a TinyCausalLM with random weights, and
what PyTorch makes of it, by plain attention over the whole sequence.

Needs Debian's python3-torch; run it again only when the model itself changes.
The numbers of cases.json then come from another PyTorch, perhaps, but not from
Folio.
"""

import json
import math
import pathlib
import struct

import torch

OUT = pathlib.Path(__file__).parent / "tiny-causal-lm"
VOCAB, HIDDEN, HEADS, LAYERS = 96, 16, 2, 2
PROMPT_LENGTHS = [1, 2, 15, 16, 17, 70]
NUM_GREEDY = 24


def make_weights(generator):
    def normal(*shape, scale=1.0, shift=0.0):
        return shift + scale * torch.randn(*shape, generator=generator)

    def norm(name):
        return {f"{name}.weight": normal(HIDDEN, scale=0.1, shift=1.0),
                f"{name}.bias": normal(HIDDEN, scale=0.1)}

    def linear(name, outputs, inputs):
        return {f"{name}.weight": normal(outputs, inputs,
                                         scale=1 / math.sqrt(inputs)),
                f"{name}.bias": normal(outputs, scale=0.1)}

    weights = {"token_emb.weight": normal(VOCAB, HIDDEN)}
    for i in range(LAYERS):
        block = f"blocks.{i}"
        weights |= norm(f"{block}.attn_norm")
        weights |= linear(f"{block}.attn.qkv", 3 * HIDDEN, HIDDEN)
        weights |= linear(f"{block}.attn.out", HIDDEN, HIDDEN)
        weights |= norm(f"{block}.ffn_norm")
        weights |= linear(f"{block}.ffn.0", 4 * HIDDEN, HIDDEN)
        weights |= linear(f"{block}.ffn.2", HIDDEN, 4 * HIDDEN)
    weights |= norm("norm")
    # Large logits, so that the likeliest token has a clear margin.
    weights["lm_head.weight"] = normal(VOCAB, HIDDEN, scale=0.7)
    return weights


def logits_of(weights, tokens):
    def norm(x, name):
        return torch.nn.functional.layer_norm(
            x, [HIDDEN], weights[f"{name}.weight"], weights[f"{name}.bias"],
            1e-5)

    def linear(x, name):
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    count = len(tokens)
    x = weights["token_emb.weight"][tokens]
    causal = torch.ones(count, count, dtype=torch.bool).tril()
    for i in range(LAYERS):
        block = f"blocks.{i}"
        qkv = linear(norm(x, f"{block}.attn_norm"), f"{block}.attn.qkv")
        q, k, v = (part.view(count, HEADS, -1).transpose(0, 1)
                   for part in qkv.split(HIDDEN, dim=1))
        scores = q @ k.transpose(1, 2) / math.sqrt(HIDDEN // HEADS)
        scores = scores.masked_fill(~causal, float("-inf"))
        attended = (scores.softmax(dim=2) @ v).transpose(0, 1)
        x = x + linear(attended.reshape(count, HIDDEN), f"{block}.attn.out")
        wide = linear(norm(x, f"{block}.ffn_norm"), f"{block}.ffn.0")
        x = x + linear(torch.nn.functional.gelu(wide), f"{block}.ffn.2")
    return norm(x, "norm") @ weights["lm_head.weight"].T


def make_case(weights, prompt):
    logprobs = logits_of(weights, prompt).log_softmax(dim=1)
    tokens, margin = list(prompt), float("inf")
    for _ in range(NUM_GREEDY):
        top = logits_of(weights, tokens)[-1].topk(2)
        margin = min(margin, float(top.values[0] - top.values[1]))
        tokens.append(int(top.indices[0]))
    return {
        "prompt": prompt,
        "prompt_logprobs": [round(float(logprobs[i, t]), 6)
                            for i, t in enumerate(prompt[1:])],
        "last_logits": [round(float(x), 6)
                        for x in logits_of(weights, prompt)[-1]],
        "greedy": tokens[len(prompt):],
        "greedy_min_margin": margin,
    }


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = struct.pack(f"<{tensor.numel()}f", *tensor.flatten().tolist())
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main():
    generator = torch.Generator().manual_seed(1)
    weights = make_weights(generator)
    cases = [make_case(weights,
                       torch.randint(VOCAB, (length,),
                                     generator=generator).tolist())
             for length in PROMPT_LENGTHS]
    OUT.mkdir(exist_ok=True)
    config = {"architectures": ["TinyCausalLM"],
              "model_type": "tiny_causal_lm", "vocab_size": VOCAB,
              "hidden_size": HIDDEN, "num_heads": HEADS,
              "num_layers": LAYERS}
    (OUT / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_safetensors(OUT / "model.safetensors", weights)
    (OUT / "cases.json").write_text(
        "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
