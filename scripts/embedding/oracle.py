"""Prints the pieces of texts, a JSON string a line, by the original tokenizer, and each cosine to the text before."""
import json
import sys

import numpy as np
import zstandard
from table import DIMENSIONS, TABLE, model_file
from tokenizers import Tokenizer

# Texts have no special tokens: [MASK] is three words like all else.
described = json.loads(model_file("tokenizer.json"))
described.update(added_tokens=[], post_processor=None, truncation=None, padding=None)
tokenizer = Tokenizer.from_str(json.dumps(described))
with zstandard.ZstdDecompressor().stream_reader(TABLE.open("rb"), read_across_frames=True) as f:
    table = f.read()
n = np.frombuffer(table, "<u4", 1)[0]
rows = np.frombuffer(table, np.uint8, n * DIMENSIONS, len(table) - n * DIMENSIONS).reshape(DIMENSIONS, n).T - 128.0
rows *= np.frombuffer(table, "<f4", n, 4)[:, None]
before = np.zeros(DIMENSIONS)
for line in sys.stdin:
    pieces = tokenizer.encode(json.loads(line)).ids[:128]
    vector = rows[pieces].sum(0)
    vector /= np.linalg.norm(vector) or 1
    print(json.dumps({"Pieces": pieces, "Cosine": round(float(vector @ before), 4)}))
    before = vector
