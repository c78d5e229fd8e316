"""The network that is trained: the embedder's layers with two heads, and its folder of weights.

A folder is that of an embedder (`model.safetensors`, `config.json`, `tokenizer.json`) with
`heads.npz` beside it: a matrix of 3 × width numbers and three more for each judgement. Without the
heads it is an embedder's own, to begin with. A teacher may be an MPNet, whose vocabulary is the
embedder's behind four marks of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tools.models import network as net
from tools.models.running import file_digest
from tools.reader.graph import HEADS, HEADS_FILE

from anaphora.reading.inputs import Pieces, by_length, padded

MPNET = "mpnet"
_SHIFT = 4
"""MPNet's number of a word piece is BERT's and so many; its marks come first."""
_MARKS = {0: 1, 101: 0, 102: 2}
"""BERT's padding, beginning and end, and MPNet's own."""


class Reader(torch.nn.Module):  # type: ignore[misc] # torch is not installed where types are checked
    """One trunk and a head of three logits for each judgement."""

    def __init__(
        self, weights: Path, *, dropout: float, layers: int, heads: Sequence[str] = HEADS
    ) -> None:
        super().__init__()
        self.trunk = net.load_network(weights, "cpu", dropout)
        if layers:
            # The lower layers alone: a smaller reader of the same shape.
            self.trunk.encoder.layer = self.trunk.encoder.layer[:layers]
        self.is_mpnet = self.trunk.config.model_type == MPNET
        self.drop = torch.nn.Dropout(dropout)
        width = int(self.trunk.config.hidden_size)
        self.heads = torch.nn.ModuleDict({name: torch.nn.Linear(width, 3) for name in heads})
        kept = weights / HEADS_FILE
        if kept.is_file():
            with np.load(kept) as found:
                for name, head in self.heads.items():
                    head.weight.data = torch.from_numpy(found[f"{name}.weight"])
                    head.bias.data = torch.from_numpy(found[f"{name}.bias"])

    def forward(self, ids: Any, mask: Any, types: Any, head: str) -> Any:
        """The three logits of each input in one judgement, in 32 bits."""
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        if self.is_mpnet:
            feed = {"input_ids": _mpnet_ids(ids), "attention_mask": mask}
        hidden = self.trunk(**feed).last_hidden_state.float()
        own = mask.unsqueeze(-1).float()
        pooled = (hidden * own).sum(dim=1) / own.sum(dim=1)
        return self.heads[head](self.drop(pooled)).float()


def _mpnet_ids(ids: Any) -> Any:
    shifted = ids + _SHIFT
    for bert, own in _MARKS.items():
        shifted = torch.where(ids == bert, own, shifted)
    return shifted


def logits_of(
    reader: Reader, inputs: Sequence[Pieces], head: str, device: str, size: int
) -> torch.Tensor:
    """The logits of inputs in their order, shape (inputs, 3); `size` of about one length a run."""
    rows, places = [], []
    for batch in by_length(inputs, size):
        tensors = [torch.from_numpy(own) for own in padded([inputs[at] for at in batch])]
        rows.append(reader(*(tensor.to(device) for tensor in tensors), head))
        places += batch
    back = torch.argsort(torch.tensor(places)).to(device)
    return torch.cat(rows)[back]


def save(reader: Reader, source: Path, folder: Path) -> str:
    """Write the weights; the SHA-256 of the trunk's and the heads' files together."""
    net.save_weights(reader.trunk, source, folder)
    config = json.loads((source / "config.json").read_text("utf-8"))
    config["num_hidden_layers"] = len(reader.trunk.encoder.layer)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", "utf-8")
    numbers = {}
    for name, head in reader.heads.items():
        numbers[f"{name}.weight"] = head.weight.detach().float().cpu().numpy()
        numbers[f"{name}.bias"] = head.bias.detach().float().cpu().numpy()
    np.savez(folder / HEADS_FILE, **numbers)
    return digest_of(folder)


def digest_of(folder: Path) -> str:
    """The SHA-256 of a folder's trunk and heads."""
    return file_digest(folder / "model.safetensors", folder / HEADS_FILE)
