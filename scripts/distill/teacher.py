"""all-MiniLM-L6-v2 in numpy: just enough of BERT to embed texts, in single precision.

On one thread, and in batches that depend on the texts alone, the same machine always gives the same
bits. Between linear algebra libraries the last digits differ, far below what is left after rounding to
eight bits, except where that is a tie.
"""

import json
import math
import pathlib
import sys

import numpy
from scipy.special import erf

HEADS = 12
WIDTH = 384
BATCH = 64
EPSILON = 1e-12


class Teacher:
    """The model, read from the safetensors file of its package."""

    def __init__(self, path: pathlib.Path):
        self.weights = read_safetensors(path)
        names = [name for name in self.weights if name.startswith("encoder.layer.")]
        self.layers = 1 + max(int(name.split(".")[2]) for name in names)

    def embed_all(self, texts: list[list[int]]) -> numpy.ndarray:
        """One vector of length one for each list of tokens, in their order."""
        vectors = numpy.zeros((len(texts), WIDTH))
        of_length = {}
        for at, text in enumerate(texts):
            of_length.setdefault(len(text), []).append(at)
        done = 0
        for _, places in sorted(of_length.items()):
            for begin in range(0, len(places), BATCH):
                batch = places[begin : begin + BATCH]
                vectors[batch] = self.embed(numpy.array([texts[at] for at in batch]))
                done += len(batch)
                print(f"\rembedded {done} of {len(texts)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        return vectors

    def embed(self, tokens: numpy.ndarray) -> numpy.ndarray:
        """One vector of length one for each row of tokens; rows are of one length, unpadded."""
        words = self.weights["embeddings.word_embeddings.weight"][tokens]
        places = self.weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
        kind = self.weights["embeddings.token_type_embeddings.weight"][0]
        hidden = self.normal(words + places + kind, "embeddings.LayerNorm")
        for layer in range(self.layers):
            hidden = self.layer(hidden, f"encoder.layer.{layer}.")
        pooled = hidden.mean(axis=1)
        return pooled / numpy.linalg.norm(pooled, axis=1, keepdims=True)

    def layer(self, hidden: numpy.ndarray, name: str) -> numpy.ndarray:
        attended = self.attention(hidden, name + "attention.")
        inner = self.linear(attended, name + "intermediate.dense")
        inner = inner * 0.5 * (1.0 + erf(inner / math.sqrt(2.0)))
        outer = self.linear(inner, name + "output.dense")
        return self.normal(attended + outer, name + "output.LayerNorm")

    def attention(self, hidden: numpy.ndarray, name: str) -> numpy.ndarray:
        batch, length, width = hidden.shape
        shape = (batch, length, HEADS, width // HEADS)
        query, key, value = (
            self.linear(hidden, f"{name}self.{part}").reshape(shape).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(width // HEADS)
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ value).transpose(0, 2, 1, 3).reshape(batch, length, width)
        mixed = self.linear(mixed, name + "output.dense")
        return self.normal(hidden + mixed, name + "output.LayerNorm")

    def linear(self, hidden: numpy.ndarray, name: str) -> numpy.ndarray:
        return hidden @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def normal(self, hidden: numpy.ndarray, name: str) -> numpy.ndarray:
        centred = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        scaled = centred / numpy.sqrt(variance + EPSILON)
        return scaled * self.weights[name + ".weight"] + self.weights[name + ".bias"]


def read_safetensors(path: pathlib.Path) -> dict[str, numpy.ndarray]:
    """All tensors of single precision."""
    data = path.read_bytes()
    header = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, about in json.loads(data[8 : 8 + header]).items():
        if name == "__metadata__" or about["dtype"] != "F32":
            continue
        begin, end = (8 + header + offset for offset in about["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(about["shape"])
    return tensors
