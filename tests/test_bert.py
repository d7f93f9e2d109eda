"""The graph of BERT models, compared with NumPy: XLM-RoBERTa differs from BERT only in its positions."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from memory.embeddings.bert import Shape, bert_graph
from memory.embeddings.onnxruntime import load_onnxruntime
from memory.embeddings.safetensors import SafetensorsWeights
from tests.model_folders import CONFIG, HEADS, WIDTH, random_tensors, write_safetensors


def reference_states(tensors: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """Return the states (tokens, WIDTH) of a row without padding, computed with NumPy."""

    def linear(rows: np.ndarray, name: str) -> np.ndarray:
        return rows @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(rows: np.ndarray, name: str) -> np.ndarray:
        centred = rows - rows.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + CONFIG["layer_norm_eps"])
        return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    layer = "encoder.layer.0"
    words = tensors["embeddings.word_embeddings.weight"][ids]
    positions = tensors["embeddings.position_embeddings.weight"][: len(ids)]
    state = norm(words + positions + tensors["embeddings.token_type_embeddings.weight"], "embeddings.LayerNorm")
    query, key, value = (linear(state, f"{layer}.attention.self.{part}") for part in ("query", "key", "value"))
    mixed = []
    for columns in np.split(np.arange(WIDTH), HEADS):
        weights = np.exp(query[:, columns] @ key[:, columns].T / np.sqrt(len(columns)))
        mixed.append(weights / weights.sum(axis=1, keepdims=True) @ value[:, columns])
    attended = linear(np.hstack(mixed), f"{layer}.attention.output.dense")
    state = norm(attended + state, f"{layer}.attention.output.LayerNorm")
    inner = linear(state, f"{layer}.intermediate.dense")
    gelu = inner * (1 + np.vectorize(math.erf)(inner / math.sqrt(2))) / 2
    return norm(linear(gelu, f"{layer}.output.dense") + state, f"{layer}.output.LayerNorm")


def states(path: Path, config: dict[str, object]) -> np.ndarray:
    """Return the states of three tokens, of which the last is padding in the second row."""
    onnxruntime = load_onnxruntime()
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    graph = bert_graph(SafetensorsWeights(path), Shape.from_config(config))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    ids, mask = np.array([[0, 5, 2], [0, 7, 1]]), np.array([[1, 1, 1], [1, 1, 0]])
    return session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


def test_the_graph_computes_bert(tmp_path: Path) -> None:
    found = states(write_safetensors(tmp_path / "bert.safetensors", random_tensors()), CONFIG | {"model_type": "bert"})

    assert np.allclose(found[0], reference_states(random_tensors(), [0, 5, 2]), atol=1e-5)
    assert np.allclose(found[1, :2], reference_states(random_tensors(), [0, 7]), atol=1e-5), "padding has no weight"


def test_positions_of_xlm_roberta_begin_behind_the_reserved_ones(tmp_path: Path) -> None:
    bert = states(write_safetensors(tmp_path / "bert.safetensors", random_tensors()), CONFIG | {"model_type": "bert"})
    config = CONFIG | {"model_type": "xlm-roberta", "pad_token_id": 1}
    xlm = states(write_safetensors(tmp_path / "xlm.safetensors", random_tensors("roberta.", 2)), config)

    assert xlm.shape == (2, 3, WIDTH)
    assert np.allclose(xlm[0], bert[0], atol=1e-5)
    assert np.allclose(xlm[1, :2], bert[1, :2], atol=1e-5)


def test_other_models_and_missing_tensors_are_refused(tmp_path: Path) -> None:
    for config in ({"model_type": "t5"}, {"model_type": "bert", "hidden_act": "relu"}):
        with pytest.raises(ValueError, match="not a BERT or XLM-RoBERTa"):
            Shape.from_config(CONFIG | config)
    values = random_tensors()
    del values["encoder.layer.0.output.dense.bias"]
    with pytest.raises(ValueError, match=r"no tensor encoder.layer.0.output.dense.bias"):
        states(write_safetensors(tmp_path / "model.safetensors", values), CONFIG | {"model_type": "bert"})
