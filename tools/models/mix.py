"""Mix networks trained from the same weights: `python -m tools.models mix bundled=0.65 RUN=0.6`.

A network is the weights it began with and what training added; a mix is those weights and a share
of each addition (task arithmetic, Ilharco et al., arXiv:2212.04089). It knows the new data and has
forgotten less of the old than a network that was trained on. The word table stays as it was: the
reader has the same one. In: folders of weights, and `bundled` for the English network that ships,
whose whole numbers are read as floats. Out: a folder of weights, and beside it `float/` as the
product reads a model.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import onnx
import torch
from onnx import numpy_helper
from safetensors.torch import load_file, save_file
from tools.minilm_network import renamed
from tools.models import network as net

from anaphora.embed.minilm import MINILM

OUT = Path(__file__).resolve().parents[2] / ".models"
BUNDLED: Final = "bundled"


def main(words: list[str]) -> None:
    """Write the mix that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tools.models mix", description=__doc__)
    add = parser.add_argument
    add("networks", type=_shared, nargs="+", metavar="FOLDER=SHARE", help=f"or {BUNDLED}=SHARE")
    add("--weights", type=Path, help="what all began with, by default the installed originals")
    add("--out", type=Path, default=OUT / "english", help="where to write")
    add("--name", default="mixed", help="what the vectors of float/ are called")
    chosen = parser.parse_args(words)
    begun_with = chosen.weights or net.installed_weights()
    begun = load_file(begun_with / "model.safetensors")
    mixed = dict(begun)
    for folder, share in chosen.networks:
        trained = bundled_weights(begun) if folder == BUNDLED else _weights_of(Path(folder))
        for name, numbers in trained.items():
            if name != net.WORD_TABLE and numbers.is_floating_point():
                mixed[name] = mixed[name] + share * (numbers - begun[name])
    weights = chosen.out / "weights"
    weights.mkdir(parents=True, exist_ok=True)
    save_file(mixed, weights / "model.safetensors", {"format": "pt"})
    for name in ("config.json", "tokenizer.json"):
        shutil.copyfile(begun_with / name, weights / name)
    net.export_for_product(weights, chosen.out / "float", chosen.name)
    print(weights)


def bundled_weights(begun: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The weights of the network that ships, under the names of those that it began with.

    Without the word table, which no training changes.
    """
    graph = onnx.load(MINILM / "model.onnx").graph
    arrays: dict[str, Any] = {
        tensor.name: numpy_helper.to_array(tensor).astype("float32") for tensor in graph.initializer
    }
    for node in graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            whole, table, _, scale = node.input[:4]
            rows = arrays[whole.removesuffix("ed.whole")]
            layer, part = node.output[0].strip("/").split("/")[:2]
            arrays[f"{layer}.{part}.weight"] = (arrays[table] * arrays[scale] * rows[:, None]).T
    official = renamed({name: name for name in begun})
    return {
        theirs: torch.tensor(arrays[ours]) for ours, theirs in official.items() if ours in arrays
    }


def _weights_of(run: Path) -> dict[str, torch.Tensor]:
    folder = run / "weights" if (run / "weights").is_dir() else run
    weights: dict[str, torch.Tensor] = load_file(folder / "model.safetensors")
    return weights


def _shared(text: str) -> tuple[str, float]:
    folder, _, share = text.rpartition("=")
    return folder, float(share)
