"""Float weights of a pair model that ships: `python -m tools.judge restore --run FOLDER`.

In: the folder that ships, and the weights that its training began with, for the word table. Out:
`weights/` of the run's folder, to train on from (`train --weights`). Each whole number is
multiplied by its scale, and what `tools/quantise.py` smoothed is undone: the weights are those that
`train` wrote, up to their rounding.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tools.judge.folders import RUN
from tools.minilm_network import renamed
from tools.models import network as net
from tools.reader.network import Reader, save

from anaphora.ingest.judging import BUNDLED
from anaphora.reading.model import MODEL_FILE, PAIRS


def main(words: list[str]) -> None:
    """Write the weights."""
    parser = argparse.ArgumentParser(prog="python -m tools.judge restore", description=__doc__)
    parser.add_argument("--run", type=Path, default=RUN, help="folder of the run")
    parser.add_argument("--model", type=Path, default=BUNDLED, help="the folder that ships")
    chosen = parser.parse_args(words)
    begun_with, target = net.installed_weights(), chosen.run / "weights"
    numbers = float_weights(chosen.model / MODEL_FILE)
    reader = Reader(begun_with, dropout=0.0, layers=0, heads=[PAIRS])
    state = renamed(reader.trunk.state_dict())
    for part in state.keys() & numbers.keys():
        state[part].copy_(torch.from_numpy(numbers[part]))
    head = reader.heads[PAIRS].state_dict()
    for part in head:
        head[part].copy_(torch.from_numpy(numbers[f"{PAIRS}.{part}"]))
    save(reader, begun_with, target)
    print(f"{target}: the weights of {chosen.model}")


def float_weights(file: Path) -> dict[str, Any]:
    """The parts of a model of 8 bits, by the names of `tools/minilm_network.py`."""
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(file).graph
    stored = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    divisors = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "Mul"}
    numbers = {name: values.copy() for name, values in stored.items()}
    for node in graph.node:
        if node.op_type == "MatMulIntegerToFloat":
            rows, whole, _, scale, *_ = node.input
            unsmoothed = stored[divisors[rows.removesuffix(".whole")]]
            matrix = stored[whole].astype(np.float32) * stored[scale] * unsmoothed[:, None]
            part = node.name.strip("/").rpartition("/")[0].replace("/", ".")
            numbers[f"{part}.weight"] = np.ascontiguousarray(matrix.T)
    return numbers
