"""Write ONNX models whose weights are external data, so that onnxruntime maps them from their file.

A model is some 50 kB of protocol buffer: nodes, and for each weight its position in a file. Only the parts of the wire
format that a BERT needs are written; field numbers are those of onnx.proto3 in github.com/onnx/onnx.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from memory.embeddings.protobuf import bytes_field, float_field, number_field, text_field

Attribute = int | float | Sequence[int]

OPSET = 20  # the first version that has Gelu
IR_VERSION = 9
FLOAT, UINT8, INT64 = 1, 2, 7
# Domain of operators that only onnxruntime has, such as those on 4-bit weights.
MICROSOFT = "com.microsoft"


class GraphBuilder:
    """Collects nodes and tensors; `serialise` returns the model."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def node(
        self, operator: str, inputs: Sequence[str], output: str, *, domain: str = "", **attributes: Attribute
    ) -> str:
        """Add a node with one output, and return the output's name. An empty input name omits an optional input."""
        fields = [text_field(1, name) for name in inputs] + [text_field(2, output), text_field(4, operator)]
        fields += [bytes_field(5, _attribute(name, value)) for name, value in attributes.items()]
        self._nodes.append(b"".join([*fields, text_field(7, domain)]))
        return output

    def external(self, name: str, kind: int, shape: Sequence[int], *, file: str, offset: int, length: int) -> str:
        """Add a tensor by its position in `file`, in the folder of the model, without reading it; return its name."""
        entries = {"location": file, "offset": str(offset), "length": str(length)}
        fields = [bytes_field(13, text_field(1, key) + text_field(2, value)) for key, value in entries.items()]
        self._tensors[name] = _tensor(name, kind, shape) + b"".join(fields) + number_field(14, 1)
        return name

    def integers(self, name: str, values: Sequence[int]) -> None:
        """Add a constant vector of 64-bit integers."""
        raw = struct.pack(f"<{len(values)}q", *values)
        self._tensors[name] = _tensor(name, INT64, [len(values)]) + bytes_field(9, raw)

    def scalar(self, name: str, value: float) -> None:
        """Add a constant number."""
        self._tensors[name] = _tensor(name, FLOAT, []) + bytes_field(9, struct.pack("<f", value))

    def serialise(self, *, inputs: Sequence[str], output: str, width: int) -> bytes:
        """Return a model that maps integers (batch, tokens) to numbers (batch, tokens, width)."""
        axes: list[int | str] = ["batch", "tokens"]
        graph = b"".join(bytes_field(1, node) for node in self._nodes) + text_field(2, "bert")
        graph += b"".join(bytes_field(5, tensor) for tensor in self._tensors.values())
        graph += b"".join(bytes_field(11, _value(name, INT64, axes)) for name in inputs)
        graph += bytes_field(12, _value(output, FLOAT, [*axes, width]))
        opsets = [number_field(2, OPSET), text_field(1, MICROSOFT) + number_field(2, 1)]
        return number_field(1, IR_VERSION) + bytes_field(7, graph) + b"".join(bytes_field(8, opset) for opset in opsets)


def _tensor(name: str, kind: int, shape: Sequence[int]) -> bytes:
    return b"".join(number_field(1, size) for size in shape) + number_field(2, kind) + text_field(8, name)


def _value(name: str, kind: int, shape: Sequence[int | str]) -> bytes:
    axes = [text_field(2, axis) if isinstance(axis, str) else number_field(1, axis) for axis in shape]
    tensor = number_field(1, kind) + bytes_field(2, b"".join(bytes_field(1, axis) for axis in axes))
    return text_field(1, name) + bytes_field(2, bytes_field(1, tensor))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return text_field(1, name) + float_field(2, value) + number_field(20, 1)
    if isinstance(value, int):
        return text_field(1, name) + number_field(3, value) + number_field(20, 2)
    return text_field(1, name) + b"".join(number_field(8, item) for item in value) + number_field(20, 7)
