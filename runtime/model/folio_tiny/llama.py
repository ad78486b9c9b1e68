"""The model, and its files in Hugging Face's format."""

import json
import math
import struct

import torch
import torch.nn.functional as F
from torch import nn

from bpe import BEGIN, BEGIN_ID, END, END_ID, VOCAB_SIZE

# Of all randomness: initial weights, and where chapters are cut.
SEED = 1611

# 3.5 M parameters: 7 MB in bfloat16, which a repository can bear, and no more
# than a million tokens of text can teach. Half as many K/V heads as heads: half
# the cache, and the default model exercises grouped-query attention.
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 256,
    "intermediate_size": 704,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "hidden_act": "silu",
    "max_position_embeddings": 1024,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-5,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": BEGIN_ID,
    "eos_token_id": END_ID,
    "torch_dtype": "bfloat16",
}
HIDDEN = CONFIG["hidden_size"]
HEADS = CONFIG["num_attention_heads"]
KV_HEADS = CONFIG["num_key_value_heads"]
HEAD_DIM = CONFIG["head_dim"]


class Linear(nn.Linear):
    """Without bias; multiplies in the type of its input."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype))


class RmsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        mean_square = x.pow(2).mean(dim=-1, keepdim=True)
        return self.weight * (
            x * torch.rsqrt(mean_square + CONFIG["rms_norm_eps"]))


class Rotation:
    """The tables of rotary position embedding (Su et al. 2021), in Llama's
    order: element i of a head turns with element i + HEAD_DIM / 2."""

    def __init__(self, length):
        exponents = torch.arange(0, HEAD_DIM, 2) / HEAD_DIM
        angles = torch.outer(torch.arange(length).float(),
                             CONFIG["rope_theta"] ** -exponents)
        self._cos, self._sin = angles.cos(), angles.sin()

    def __call__(self, x):
        first, second = x.chunk(2, dim=-1)
        cos, sin = self._cos.to(x.dtype), self._sin.to(x.dtype)
        return torch.cat([first * cos - second * sin,
                          second * cos + first * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = Linear(HIDDEN, HEADS * HEAD_DIM)
        self.k_proj = Linear(HIDDEN, KV_HEADS * HEAD_DIM)
        self.v_proj = Linear(HIDDEN, KV_HEADS * HEAD_DIM)
        self.o_proj = Linear(HEADS * HEAD_DIM, HIDDEN)

    def forward(self, x, rotation, mask):
        rows, length, _ = x.shape

        def by_head(y):
            return y.view(rows, length, -1, HEAD_DIM).transpose(1, 2)

        q = rotation(by_head(self.q_proj(x)) / math.sqrt(HEAD_DIM))
        k = rotation(by_head(self.k_proj(x)))
        v = by_head(self.v_proj(x))
        # The heads that share a K/V head follow one another, so that their
        # queries make one matrix.
        scores = q.view(rows, KV_HEADS, -1, HEAD_DIM) @ k.transpose(2, 3)
        weights = (scores.view(rows, HEADS, length, length) +
                   mask).softmax(dim=-1)
        attended = weights.view(rows, KV_HEADS, -1, length) @ v
        return self.o_proj(attended.view(rows, HEADS, length, HEAD_DIM)
                           .transpose(1, 2).reshape(rows, length, -1))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = Linear(HIDDEN, CONFIG["intermediate_size"])
        self.up_proj = Linear(HIDDEN, CONFIG["intermediate_size"])
        self.down_proj = Linear(CONFIG["intermediate_size"], HIDDEN)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = RmsNorm()
        self.self_attn = Attention()
        self.post_attention_layernorm = RmsNorm()
        self.mlp = Mlp()

    def forward(self, x, product_type, rotation, mask):
        inner = self.input_layernorm(x).to(product_type)
        x = x + self.self_attn(inner, rotation, mask)
        inner = self.post_attention_layernorm(x).to(product_type)
        return x + self.mlp(inner)


class Llama(nn.Module):
    """The modules' names are those of Hugging Face's tensors. The residual
    stream and the norms are float32, the products of `product_type`."""

    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCAB_SIZE, HIDDEN)
        self.layers = nn.ModuleList(
            Layer() for _ in range(CONFIG["num_hidden_layers"]))
        self.norm = RmsNorm()
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                # What is added to the residual stream starts smaller, so that
                # the stream's variance doesn't grow with depth (GPT-2).
                adds = name.endswith(("o_proj.weight", "down_proj.weight"))
                depth = 2 * len(self.layers) if adds else 1
                nn.init.normal_(parameter, std=0.02 / math.sqrt(depth))

    def forward(self, tokens, product_type=torch.float32):
        """[rows, length] token ids -> [rows, length, VOCAB_SIZE] logits."""
        length = tokens.shape[1]
        mask = torch.full((length, length), -math.inf).triu(1).to(product_type)
        rotation = Rotation(length)
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x, product_type, rotation, mask)
        x = self.norm(x).to(product_type)
        return F.linear(x, self.embed_tokens.weight.to(product_type)).float()


def make_model():
    """The model before training."""
    torch.manual_seed(SEED)
    return Llama()


def write_safetensors(path, tensors):
    """Writes BF16 tensors: the header's length, the header, the data."""
    header, data = {"__metadata__": {"format": "pt"}}, []
    size = 0
    for name, tensor in sorted(tensors.items()):
        # As integers, since Python cannot pack a bfloat16.
        halves = tensor.contiguous().view(torch.int16).flatten().tolist()
        data.append(struct.pack(f"<{len(halves)}h", *halves))
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape),
                        "data_offsets": [size, size + len(data[-1])]}
        size += len(data[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def read_safetensors(path):
    """Reads what write_safetensors writes."""
    content = path.read_bytes()
    start = 8 + struct.unpack_from("<Q", content)[0]
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if name == "__metadata__":
            continue
        first, last = (start + offset for offset in entry["data_offsets"])
        flat = torch.frombuffer(bytearray(content[first:last]),
                                dtype=torch.bfloat16)
        tensors[name] = flat.view(entry["shape"])
    return tensors


def rounded(weights):
    """The weights as they are stored, in bfloat16."""
    return {name: tensor.to(torch.bfloat16)
            for name, tensor in weights.items()}


def export(folder, tokenizer, weights):
    """Writes the folder that Folio, or any reader of Hugging Face's files,
    opens. `weights` are rounded."""
    def write(name, content):
        (folder / name).write_text(
            json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    folder.mkdir(parents=True, exist_ok=True)
    write("config.json", CONFIG)
    write("generation_config.json",
          {"bos_token_id": BEGIN_ID, "eos_token_id": END_ID})
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BEGIN, "eos_token": END, "add_bos_token": True,
        "add_eos_token": False, "clean_up_tokenization_spaces": False,
        "model_max_length": CONFIG["max_position_embeddings"]})
    write("tokenizer.json", tokenizer.as_json())
    write_safetensors(folder / "model.safetensors",
                      {f"model.{name}": tensor
                       for name, tensor in weights.items()})


def with_weights(tensors):
    """A model ready to compute in float32 with the given weights."""
    model = Llama()
    model.load_state_dict({name: tensor.float()
                           for name, tensor in tensors.items()})
    return model.eval()


def read_model(folder):
    tensors = read_safetensors(folder / "model.safetensors")
    return with_weights({name.removeprefix("model."): tensor
                         for name, tensor in tensors.items()})
