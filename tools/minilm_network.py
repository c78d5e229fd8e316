"""all-MiniLM-L6-v2 written out in plain torch, and its export to ONNX.

A folder with the official weights comes in, an ONNX file with 32-bit weights goes out. Written out
because the graph of the transformers library changes with its releases; `export` compares the two
when transformers is installed. Nothing here is needed to run Anaphora.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

__all__ = ["INPUTS", "OUTPUT", "TURN", "export", "renamed"]

T = TypeVar("T")

INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
OUTPUT = "last_hidden_state"
TURN = "turn.weight"
"""A square of numbers by which every row is multiplied in the end, where a network has it."""

# What the official file calls a part, and what it is called here.
_NAMES = (
    ("embeddings.word_embeddings.", "word."),
    ("embeddings.position_embeddings.", "position."),
    ("embeddings.token_type_embeddings.", "segment."),
    ("embeddings.LayerNorm.", "norm."),
    ("encoder.layer.", "layers."),
    ("attention.self.query.", "query."),
    ("attention.self.key.", "key."),
    ("attention.self.value.", "value."),
    ("attention.output.dense.", "out."),
    ("attention.output.LayerNorm.", "norm_attention."),
    ("intermediate.dense.", "up."),
    ("output.dense.", "down."),
    ("output.LayerNorm.", "norm_feed."),
)
_UNUSED = ("pooler.", "embeddings.position_ids")


class _Layer(nn.Module):  # type: ignore[misc] # torch is not installed where types are checked
    def __init__(self, width: int, inner: int, heads: int, epsilon: float) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm_attention = nn.LayerNorm(width, eps=epsilon)
        self.norm_feed = nn.LayerNorm(width, eps=epsilon)
        self.heads, self.size = heads, width // heads

    def _split(self, rows: Tensor) -> Tensor:
        return rows.view(rows.shape[0], rows.shape[1], self.heads, self.size).transpose(1, 2)

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        query, key = self._split(self.query(rows)), self._split(self.key(rows))
        weights = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(self.size) + mask, -1)
        mixed = (weights @ self._split(self.value(rows))).transpose(1, 2).reshape(rows.shape)
        rows = self.norm_attention(rows + self.out(mixed))
        return self.norm_feed(rows + self.down(nn.functional.gelu(self.up(rows))))


class _Network(nn.Module):  # type: ignore[misc] # as above
    def __init__(self, config: dict[str, int | float], *, turned: bool) -> None:
        super().__init__()
        width, epsilon = int(config["hidden_size"]), float(config["layer_norm_eps"])
        self.word = nn.Embedding(int(config["vocab_size"]), width)
        self.position = nn.Embedding(int(config["max_position_embeddings"]), width)
        self.segment = nn.Embedding(int(config["type_vocab_size"]), width)
        self.norm = nn.LayerNorm(width, eps=epsilon)
        self.layers = nn.ModuleList(
            _Layer(
                width, int(config["intermediate_size"]), int(config["num_attention_heads"]), epsilon
            )
            for _ in range(int(config["num_hidden_layers"]))
        )
        self.turn = nn.Linear(width, width, bias=False) if turned else nn.Identity()

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1])[None]
        rows = self.norm(self.word(ids) + self.position(places) + self.segment(segments))
        # A large negative number instead of infinity: a row of padding alone stays a number.
        bias = (1.0 - mask[:, None, None, :].to(rows.dtype)) * -1e4
        for layer in self.layers:
            rows = layer(rows, bias)
        # The mean of turned rows is the turned mean.
        turned: Tensor = self.turn(rows)
        return turned


def export(weights: Path, target: Path) -> None:
    """Write the network as ONNX (opset 17). Raises ValueError when it is not the original."""
    config = json.loads((weights / "config.json").read_text("utf-8"))
    state = load_file(weights / "model.safetensors")
    network = _Network(config, turned=TURN in state).eval()
    network.load_state_dict(renamed(state))
    ids = torch.randint(1000, 2000, (2, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    inputs = (ids, mask, torch.zeros_like(ids))
    _compare(network, weights, inputs, state.get(TURN))
    axes = {0: "batch", 1: "sequence"}
    with warnings.catch_warnings():
        # The tracing exporter is deprecated, but it is the one that writes opset 17 as asked.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            inputs,
            str(target),
            dynamo=False,
            opset_version=17,
            input_names=INPUTS,
            output_names=[OUTPUT],
            dynamic_axes=dict.fromkeys([*INPUTS, OUTPUT], axes),
        )


def renamed(state: Mapping[str, T]) -> dict[str, T]:
    """What belongs to the parts of an official file, by the names of the parts here."""
    by_name = {}
    for original, tensor in state.items():
        if original.startswith(_UNUSED):
            continue
        name = original
        for theirs, ours in _NAMES:
            name = name.replace(theirs, ours)
        by_name[name] = tensor
    return by_name


def _compare(
    network: nn.Module,
    weights: Path,
    inputs: tuple[Tensor, Tensor, Tensor],
    turn: Tensor | None,
) -> None:
    try:
        from transformers import BertModel
    except ImportError:
        print("transformers is not installed: the network was not compared with theirs")
        return
    original = BertModel.from_pretrained(
        weights, attn_implementation="eager", add_pooling_layer=False
    ).eval()
    ids, mask, segments = inputs
    with torch.no_grad():
        theirs = original(input_ids=ids, attention_mask=mask, token_type_ids=segments)
        rows = theirs.last_hidden_state
        rows = rows if turn is None else rows @ turn.T
        apart = (rows - network(*inputs)).abs()[mask == 1].max().item()
    if apart > 1e-4:
        raise ValueError(f"the network is {apart} away from the original")
    print(f"largest difference to transformers: {apart:.1e}")
