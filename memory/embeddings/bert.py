"""Build BERT (Devlin et al. 2018, exact GELU) as an ONNX graph, independently of how its weights are stored.

The names of nodes and constants are part of model.onnx, whose hash is pinned (memory.embeddings.multilingual_e5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from memory.embeddings.onnx_builder import FLOAT, GraphBuilder


@dataclass(frozen=True)
class Shape:
    """The figures of a model's config.json that its graph depends on.

    `first_position` is the row of the first token's position embedding: 0 for BERT; RoBERTa models reserve the first
    rows.
    """

    layers: int
    heads: int
    hidden: int
    epsilon: float
    first_position: int = 0

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Shape:
        """Read a model's config.json. Raises ValueError if this graph does not compute the model."""
        kind = config.get("model_type")
        if kind not in ("bert", "roberta", "xlm-roberta") or config.get("hidden_act", "gelu") != "gelu":
            raise ValueError("it is not a BERT or XLM-RoBERTa with the activation gelu")
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise ValueError("its positions are not absolute")
        return cls(
            config["num_hidden_layers"],
            config["num_attention_heads"],
            config["hidden_size"],
            config.get("layer_norm_eps", 1e-12),
            0 if kind == "bert" else config["pad_token_id"] + 1,
        )


class Weights(Protocol):
    """The weights of one model. The methods add them to a graph, by the names of BERT's reference implementation."""

    def tensor(self, graph: GraphBuilder, name: str) -> str:
        """Add a tensor of 32-bit floats and return its name. Raises ValueError if it does not exist."""

    def word_embeddings(self, graph: GraphBuilder, ids: str) -> str:
        """Add a look-up of the tokens `ids` and return the name of its output (batch, tokens, hidden)."""

    def linear(self, graph: GraphBuilder, state: str, name: str) -> str:
        """Add the linear layer `name` applied to `state` (rows, inputs); return the name of its output."""


def bert_graph(weights: Weights, shape: Shape) -> bytes:
    """Return a serialised model that maps input_ids and attention_mask (batch, tokens) to states (batch, tokens, hidden).

    Raises ValueError if a tensor is missing.
    """
    graph = GraphBuilder()
    width, heads, first = shape.hidden, shape.heads, shape.first_position
    graph.integers("rows", [-1, width])
    graph.integers("split", [0, 0, heads, width // heads])
    graph.integers("one", [1])
    graph.integers("zero", [0])
    graph.integers("width", [width])
    graph.integers("first_position", [first])
    graph.integers("mask_axes", [1, 2])
    graph.scalar("keep", 1.0)
    graph.scalar("far_below", -10000.0)
    graph.scalar("scale", (width // heads) ** -0.5)

    # The bias is 0 for a token and -10,000 for padding, so that softmax gives padding no weight.
    graph.node("Cast", ["attention_mask"], "mask", to=FLOAT)
    graph.node("Sub", ["keep", "mask"], "padding")
    graph.node("Mul", ["padding", "far_below"], "penalty")
    graph.node("Unsqueeze", ["penalty", "mask_axes"], "bias")

    graph.node("Shape", ["input_ids"], "ids_shape")
    graph.node("Shape", ["input_ids"], "length", start=1, end=2)
    graph.node("Add", ["first_position", "length"], "last_position")
    graph.node("Concat", ["ids_shape", "width"], "hidden_shape", axis=0)
    positions = weights.tensor(graph, "embeddings.position_embeddings.weight")
    graph.node("Slice", [positions, "first_position", "last_position"], "positions")
    graph.node("Slice", [weights.tensor(graph, "embeddings.token_type_embeddings.weight"), "zero", "one"], "first_type")
    graph.node("Add", [weights.word_embeddings(graph, "input_ids"), "positions"], "words_placed")
    graph.node("Add", ["words_placed", "first_type"], "embedded")
    # Linear layers take (batch * tokens, width). Unlike MatMul, Gemm reads weights transposed, as they are stored.
    graph.node("Reshape", ["embedded", "rows"], "embedded_rows")
    state = _norm(graph, weights, "embedded_rows", "embeddings.LayerNorm", shape.epsilon)
    for number in range(shape.layers):
        state = _layer(graph, weights, state, f"encoder.layer.{number}", shape.epsilon)
    graph.node("Reshape", [state, "hidden_shape"], "last_hidden_state")
    return graph.serialise(inputs=("input_ids", "attention_mask"), output="last_hidden_state", width=width)


def _layer(graph: GraphBuilder, weights: Weights, state: str, name: str, epsilon: float) -> str:
    own = f"{name}.attention.self"
    heads = {}
    for part, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        rows = weights.linear(graph, state, f"{own}.{part}")
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

    attended = weights.linear(graph, f"{own}.rows", f"{name}.attention.output.dense")
    graph.node("Add", [attended, state], f"{name}.attention.sum")
    state = _norm(graph, weights, f"{name}.attention.sum", f"{name}.attention.output.LayerNorm", epsilon)
    inner = weights.linear(graph, state, f"{name}.intermediate.dense")
    graph.node("Gelu", [inner], f"{name}.active")
    outer = weights.linear(graph, f"{name}.active", f"{name}.output.dense")
    graph.node("Add", [outer, state], f"{name}.sum")
    return _norm(graph, weights, f"{name}.sum", f"{name}.output.LayerNorm", epsilon)


def _norm(graph: GraphBuilder, weights: Weights, state: str, name: str, epsilon: float) -> str:
    inputs = [state, weights.tensor(graph, f"{name}.weight"), weights.tensor(graph, f"{name}.bias")]
    return graph.node("LayerNormalization", inputs, f"{name}.out", axis=-1, epsilon=epsilon)
