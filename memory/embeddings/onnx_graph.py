"""Writes the ONNX graph of a BERT encoder whose weights stay in their safetensors file.

The graph is some 20 kB of protocol buffer: nodes, and for each weight where it lies in the file. onnxruntime
maps that file, so no second copy of the weights exists, on disk or in memory. Only the wire format needed for
this is written here; field numbers are those of onnx.proto3 in github.com/onnx/onnx, the computation is that
of BERT (Devlin et al. 2018) with the exact, erf-based GELU.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Attribute = int | float | Sequence[int]

OPSET = 20  # the first with Gelu
IR_VERSION = 9
FLOAT, INT64 = 1, 7


@dataclass(frozen=True)
class Shape:
    """The figures of a model's config.json that its graph depends on."""

    layers: int
    heads: int
    hidden: int
    epsilon: float

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Shape:
        """Read a model's config.json. Raises ValueError if it is not a BERT that this graph computes."""
        if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
            raise ValueError("it is not a BERT with the activation gelu")
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise ValueError("its positions are not absolute")
        return cls(
            config["num_hidden_layers"],
            config["num_attention_heads"],
            config["hidden_size"],
            config.get("layer_norm_eps", 1e-12),
        )


def bert_graph(weights: Path, shape: Shape) -> bytes:
    """Return a serialised model from input_ids, attention_mask (batch, tokens) to states (batch, tokens, hidden).

    `weights` is the safetensors file; the session must be given its folder. Raises ValueError if a tensor is missing.
    """
    graph = _Graph(weights)
    width, heads = shape.hidden, shape.heads
    graph.constant("rows", [-1, width])
    graph.constant("split", [0, 0, heads, width // heads])
    graph.constant("one", [1])
    graph.constant("zero", [0])
    graph.constant("width", [width])
    graph.constant("mask_axes", [1, 2])
    graph.scalar("keep", 1.0)
    graph.scalar("far_below", -10000.0)
    graph.scalar("scale", (width // heads) ** -0.5)

    # 0 where a token counts, far below 0 where it is padding, so that softmax gives it nothing.
    graph.node("Cast", ["attention_mask"], "mask", to=FLOAT)
    graph.node("Sub", ["keep", "mask"], "padding")
    graph.node("Mul", ["padding", "far_below"], "penalty")
    graph.node("Unsqueeze", ["penalty", "mask_axes"], "bias")

    graph.node("Shape", ["input_ids"], "ids_shape")
    graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    graph.node("Concat", ["ids_shape", "width"], "hidden_shape", axis=0)
    graph.node("Slice", [graph.weight("embeddings.position_embeddings.weight"), "zero", "length"], "positions")
    graph.node("Slice", [graph.weight("embeddings.token_type_embeddings.weight"), "zero", "one"], "first_type")
    graph.node("Gather", [graph.weight("embeddings.word_embeddings.weight"), "input_ids"], "words")
    graph.node("Add", ["words", "positions"], "words_placed")
    graph.node("Add", ["words_placed", "first_type"], "embedded")
    # Linear layers take (batch * tokens, width): unlike MatMul, Gemm reads weights transposed, as they lie.
    graph.node("Reshape", ["embedded", "rows"], "embedded_rows")
    state = graph.norm("embedded_rows", "embeddings.LayerNorm", shape.epsilon)
    for number in range(shape.layers):
        state = _layer(graph, state, f"encoder.layer.{number}", shape.epsilon)
    graph.node("Reshape", [state, "hidden_shape"], "last_hidden_state")
    return graph.model(inputs=("input_ids", "attention_mask"), output="last_hidden_state", width=width)


def _layer(graph: _Graph, state: str, name: str, epsilon: float) -> str:
    own = f"{name}.attention.self"
    heads = {}
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        rows = graph.linear(state, f"{own}.{part}")
        graph.node("Reshape", [rows, "hidden_shape"], f"{own}.{part}.hidden")
        graph.node("Reshape", [f"{own}.{part}.hidden", "split"], f"{own}.{part}.split")
        heads[part] = graph.node("Transpose", [f"{own}.{part}.split"], f"{own}.{part}.heads", perm=order)
    graph.node("MatMul", [heads["query"], heads["key"]], f"{own}.raw")
    graph.node("Mul", [f"{own}.raw", "scale"], f"{own}.scaled")
    graph.node("Add", [f"{own}.scaled", "bias"], f"{own}.masked")
    graph.node("Softmax", [f"{own}.masked"], f"{own}.shares", axis=-1)
    graph.node("MatMul", [f"{own}.shares", heads["value"]], f"{own}.mixed")
    graph.node("Transpose", [f"{own}.mixed"], f"{own}.together", perm=[0, 2, 1, 3])
    graph.node("Reshape", [f"{own}.together", "rows"], f"{own}.rows")

    attended = graph.linear(f"{own}.rows", f"{name}.attention.output.dense")
    graph.node("Add", [attended, state], f"{name}.attention.sum")
    state = graph.norm(f"{name}.attention.sum", f"{name}.attention.output.LayerNorm", epsilon)
    inner = graph.linear(state, f"{name}.intermediate.dense")
    graph.node("Gelu", [inner], f"{name}.active")
    outer = graph.linear(f"{name}.active", f"{name}.output.dense")
    graph.node("Add", [outer, state], f"{name}.sum")
    return graph.norm(f"{name}.sum", f"{name}.output.LayerNorm", epsilon)


class _Graph:
    """Collects nodes and tensors; `model` gives the bytes."""

    def __init__(self, weights: Path) -> None:
        with weights.open("rb") as file:  # 8 bytes of length, a JSON table of tensors, then the tensors
            (length,) = struct.unpack("<Q", file.read(8))
            self._table = json.loads(file.read(length))
        self._file, self._start = weights.name, 8 + length
        # Some exports put the encoder below a name of its own.
        self._prefix = "bert." if "bert.embeddings.word_embeddings.weight" in self._table else ""
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def node(self, operator: str, inputs: Sequence[str], output: str, **attributes: Attribute) -> str:
        fields = [_text(1, name) for name in inputs] + [_text(2, output), _text(4, operator)]
        fields += [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(b"".join(fields))
        return output

    def linear(self, state: str, name: str) -> str:
        inputs = [state, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.node("Gemm", inputs, f"{name}.out", transB=1)

    def norm(self, state: str, name: str, epsilon: float) -> str:
        inputs = [state, self.weight(f"{name}.weight"), self.weight(f"{name}.bias")]
        return self.node("LayerNormalization", inputs, f"{name}.out", axis=-1, epsilon=epsilon)

    def weight(self, name: str) -> str:
        """Add a tensor of the file by its position, without reading it."""
        entry = self._table.get(self._prefix + name)
        if entry is None or entry["dtype"] != "F32":
            raise ValueError(f"its weights have no tensor {name} of 32-bit floats")
        start, end = entry["data_offsets"]
        place = {"location": self._file, "offset": str(self._start + start), "length": str(end - start)}
        external = [_bytes(13, _text(1, key) + _text(2, value)) for key, value in place.items()]
        self._tensors[name] = _tensor(name, FLOAT, entry["shape"]) + b"".join(external) + _number(14, 1)
        return name

    def constant(self, name: str, values: Sequence[int]) -> None:
        raw = struct.pack(f"<{len(values)}q", *values)
        self._tensors[name] = _tensor(name, INT64, [len(values)]) + _bytes(9, raw)

    def scalar(self, name: str, value: float) -> None:
        self._tensors[name] = _tensor(name, FLOAT, []) + _bytes(9, struct.pack("<f", value))

    def model(self, *, inputs: Sequence[str], output: str, width: int) -> bytes:
        axes: list[int | str] = ["batch", "tokens"]
        graph = b"".join(_bytes(1, node) for node in self._nodes) + _text(2, "bert")
        graph += b"".join(_bytes(5, tensor) for tensor in self._tensors.values())
        graph += b"".join(_bytes(11, _value(name, INT64, axes)) for name in inputs)
        graph += _bytes(12, _value(output, FLOAT, [*axes, width]))
        return _number(1, IR_VERSION) + _bytes(7, graph) + _bytes(8, _number(2, OPSET))


def _tensor(name: str, kind: int, shape: Sequence[int]) -> bytes:
    return b"".join(_number(1, size) for size in shape) + _number(2, kind) + _text(8, name)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    axes = [_text(2, axis) if isinstance(axis, str) else _number(1, axis) for axis in shape]
    tensor = _number(1, kind) + _bytes(2, b"".join(_bytes(1, axis) for axis in axes))
    return _text(1, name) + _bytes(2, _bytes(1, tensor))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _text(1, name) + _key(2, 5) + struct.pack("<f", value) + _number(20, 1)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + b"".join(_number(8, item) for item in value) + _number(20, 7)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value)


def _key(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers as 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
