"""The graph of BERT models: XLM-RoBERTa differs from BERT only in its positions."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from memory.embeddings.bert import Shape, bert_graph
from memory.embeddings.onnxruntime import load_onnxruntime
from memory.embeddings.safetensors import SafetensorsWeights

WIDTH, INNER, HEADS, VOCABULARY, POSITIONS = 8, 16, 2, 20, 6
CONFIG = {"num_hidden_layers": 1, "num_attention_heads": HEADS, "hidden_size": WIDTH, "layer_norm_eps": 1e-5}


def tensors(prefix: str, reserved: int) -> dict[str, np.ndarray]:
    """Return random weights with `reserved` unused positions before the others; the same values at each call."""
    random = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {"embeddings.word_embeddings.weight": (VOCABULARY, WIDTH)}
    shapes |= {"embeddings.position_embeddings.weight": (POSITIONS, WIDTH)}
    shapes |= {"embeddings.token_type_embeddings.weight": (1, WIDTH)}
    layer = "encoder.layer.0."
    for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes |= {f"{layer}{name}.weight": (WIDTH, WIDTH), f"{layer}{name}.bias": (WIDTH,)}
    shapes |= {f"{layer}intermediate.dense.weight": (INNER, WIDTH), f"{layer}intermediate.dense.bias": (INNER,)}
    shapes |= {f"{layer}output.dense.weight": (WIDTH, INNER), f"{layer}output.dense.bias": (WIDTH,)}
    for name in ("embeddings.LayerNorm", f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"):
        shapes |= {f"{name}.weight": (WIDTH,), f"{name}.bias": (WIDTH,)}
    values = {name: random.normal(size=shape).astype("<f4") for name, shape in shapes.items()}
    positions = values["embeddings.position_embeddings.weight"]
    values["embeddings.position_embeddings.weight"] = np.vstack([np.full((reserved, WIDTH), 9, "<f4"), positions])
    return {prefix + name: value for name, value in values.items()}


def write(path: Path, values: dict[str, np.ndarray]) -> Path:
    """Write a safetensors file."""
    table, at = {}, 0
    for name, value in values.items():
        table[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    header = json.dumps(table).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(value.tobytes() for value in values.values()))
    return path


def states(path: Path, config: dict[str, object]) -> np.ndarray:
    """Return the states of three tokens, of which the last is padding in the second row."""
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    graph = bert_graph(SafetensorsWeights(path), Shape.from_config(config))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    ids, mask = np.array([[0, 5, 2], [0, 7, 1]]), np.array([[1, 1, 1], [1, 1, 0]])
    return session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


def test_positions_of_xlm_roberta_begin_behind_the_reserved_ones(tmp_path: Path) -> None:
    bert = states(write(tmp_path / "bert.safetensors", tensors("", 0)), CONFIG | {"model_type": "bert"})
    config = CONFIG | {"model_type": "xlm-roberta", "pad_token_id": 1}
    xlm = states(write(tmp_path / "xlm.safetensors", tensors("roberta.", 2)), config)

    assert xlm.shape == (2, 3, WIDTH)
    assert np.allclose(xlm[0], bert[0], atol=1e-5)
    assert np.allclose(xlm[1, :2], bert[1, :2], atol=1e-5)


def test_other_models_and_missing_tensors_are_refused(tmp_path: Path) -> None:
    for config in ({"model_type": "t5"}, {"model_type": "bert", "hidden_act": "relu"}):
        with pytest.raises(ValueError, match="not a BERT or XLM-RoBERTa"):
            Shape.from_config(CONFIG | config)
    values = tensors("", 0)
    del values["encoder.layer.0.output.dense.bias"]
    with pytest.raises(ValueError, match=r"no tensor encoder.layer.0.output.dense.bias"):
        states(write(tmp_path / "model.safetensors", values), CONFIG | {"model_type": "bert"})
