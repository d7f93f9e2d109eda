"""Model folders for tests: a tiny BERT with random weights, and links to the files of an installed model."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from memory.embeddings import local

WIDTH, INNER, HEADS, POSITIONS = 8, 16, 2, 12
WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "lunch", "boiler", "key", "?", "query", "passage", ":")
CONFIG = {"num_hidden_layers": 1, "num_attention_heads": HEADS, "hidden_size": WIDTH, "layer_norm_eps": 1e-5}


def random_tensors(prefix: str = "", reserved_positions: int = 0) -> dict[str, np.ndarray]:
    """Return the tensors of a BERT by name, with unused positions before the others; the same values at each call."""
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {"embeddings.word_embeddings.weight": (len(WORDS), WIDTH)}
    shapes |= {"embeddings.position_embeddings.weight": (POSITIONS, WIDTH)}
    shapes |= {"embeddings.token_type_embeddings.weight": (1, WIDTH)}
    layer = "encoder.layer.0."
    for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes |= {f"{layer}{name}.weight": (WIDTH, WIDTH), f"{layer}{name}.bias": (WIDTH,)}
    shapes |= {f"{layer}intermediate.dense.weight": (INNER, WIDTH), f"{layer}intermediate.dense.bias": (INNER,)}
    shapes |= {f"{layer}output.dense.weight": (WIDTH, INNER), f"{layer}output.dense.bias": (WIDTH,)}
    for name in ("embeddings.LayerNorm", f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"):
        shapes |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    values = {name: random.normal(scale=0.3, size=shape).astype("<f4") for name, shape in shapes.items()}
    positions = values["embeddings.position_embeddings.weight"]
    unused = np.full((reserved_positions, WIDTH), 9, "<f4")
    values["embeddings.position_embeddings.weight"] = np.vstack([unused, positions])
    return {prefix + name: value for name, value in values.items()}


def write_safetensors(path: Path, values: dict[str, np.ndarray]) -> Path:
    """Write a safetensors file."""
    table, at = {}, 0
    for name, value in values.items():
        table[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    header = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(value.tobytes() for value in values.values()))
    return path


def write_bert_folder(folder: Path, **settings: object) -> Path:
    """Write a model folder whose tokens are WORDS; `settings` are contents of JSON files, by their names."""
    write_safetensors(folder / "model.safetensors", random_tensors())
    tokenizer = Tokenizer(models.WordLevel({word: id for id, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.save(str(folder / "tokenizer.json"))
    for name, content in {"config": CONFIG | {"model_type": "bert"}, **settings}.items():
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def link_model(model: str, folder: Path, *, without: str = "") -> Path:
    """Return a folder with links to the files of an installed model, except `without`."""
    folder.mkdir(exist_ok=True)
    for file in local._get_folder(model).iterdir():
        if file.is_file() and file.name != without:
            (folder / file.name).symlink_to(file)
    return folder
