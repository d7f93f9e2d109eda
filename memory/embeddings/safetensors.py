"""Refer to the 32-bit weights of a safetensors file without reading them: https://github.com/huggingface/safetensors."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from memory.embeddings.onnx_builder import FLOAT, GraphBuilder

# Some exports prefix the names of the encoder's tensors.
_PREFIXES = ("", "bert.", "roberta.")


class SafetensorsWeights:
    """The weights of a BERT or XLM-RoBERTa model. The session must be given the folder of the file."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:  # 8 bytes of length, a JSON table of tensors, then the tensors
            (length,) = struct.unpack("<Q", file.read(8))
            self._table = json.loads(file.read(length))
        self._file, self._start = path.name, 8 + length
        tables = (prefix for prefix in _PREFIXES if f"{prefix}embeddings.word_embeddings.weight" in self._table)
        self._prefix = next(tables, "")

    def tensor(self, graph: GraphBuilder, name: str) -> str:
        """Add a tensor of the file by its position. Raises ValueError if it is missing or has another type."""
        entry = self._table.get(self._prefix + name)
        if entry is None or entry["dtype"] != "F32":
            raise ValueError(f"its weights have no tensor {name} of 32-bit floats")
        start, end = entry["data_offsets"]
        offset, length = self._start + start, end - start
        return graph.external(name, FLOAT, entry["shape"], file=self._file, offset=offset, length=length)

    def word_embeddings(self, graph: GraphBuilder, ids: str) -> str:
        """Add a look-up of the tokens."""
        return graph.node("Gather", [self.tensor(graph, "embeddings.word_embeddings.weight"), ids], "words")

    def linear(self, graph: GraphBuilder, state: str, name: str) -> str:
        """Add a linear layer."""
        inputs = [state, self.tensor(graph, f"{name}.weight"), self.tensor(graph, f"{name}.bias")]
        return graph.node("Gemm", inputs, f"{name}.out", transB=1)
