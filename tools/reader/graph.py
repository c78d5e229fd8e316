"""The ONNX graph of a reader: an embedder's, with the mean of its rows and two heads behind it.

In: the graph that `tools/minilm_network.py` exports, whose output is the last hidden state. Out:
the same with the outputs `answers` and `changes`, shape (batch, 3) each. The heads stay in 32 bits:
`tools/quantise.py` turns products of the layers alone into whole numbers.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from tools.reader.examples import ANSWER_CLASSES, CHANGE_CLASSES, CHANGES

from anaphora.embed.word_table import ROW_SCALES, ROWS, TABLE, VALUES
from anaphora.reading.inputs import TOKENIZER, WINDOW
from anaphora.reading.model import ANSWERS, LENGTHS, MANIFEST_FILE, MODEL_FILE

HEADS: Final = (ANSWERS, CHANGES)
HEADS_FILE: Final = "heads.npz"


def export(weights: Path, target: Path) -> None:
    """Write a folder of weights with heads as ONNX in 32 bits."""
    from tools import minilm_network

    with tempfile.TemporaryDirectory() as temporary:
        trunk = Path(temporary) / "trunk.onnx"
        minilm_network.export(weights, trunk)
        with np.load(weights / HEADS_FILE) as heads:
            add_heads(trunk, target, dict(heads))


def add_heads(source: Path, target: Path, heads: Mapping[str, Any]) -> None:
    """Put the mean over the word pieces and the heads behind a trunk."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(source)
    graph = model.graph
    hidden = graph.output[0].name

    def constant(name: str, values: Any) -> str:
        graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    last, rows = constant("pool.last", np.array([-1])), constant("pool.rows", np.array([1]))
    graph.node.extend(
        [
            helper.make_node("Cast", ["attention_mask"], ["pool.mask"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["pool.mask", last], ["pool.own"]),
            helper.make_node("Mul", [hidden, "pool.own"], ["pool.kept"]),
            helper.make_node("ReduceSum", ["pool.kept", rows], ["pool.sum"], keepdims=0),
            helper.make_node("ReduceSum", ["pool.own", rows], ["pool.count"], keepdims=0),
            helper.make_node("Div", ["pool.sum", "pool.count"], ["pooled"]),
        ]
    )
    del graph.output[:]
    for name in sorted({part.partition(".")[0] for part in heads}):
        weight = constant(f"{name}.weight", heads[f"{name}.weight"].astype(np.float32))
        bias = constant(f"{name}.bias", heads[f"{name}.bias"].astype(np.float32))
        graph.node.append(
            helper.make_node("Gemm", ["pooled", weight, bias], [name], name=name, transB=1)
        )
        graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]))
    onnx.checker.check_model(model)
    onnx.save(model, target)


def without_table(source: Path, target: Path) -> dict[str, dict[str, str]]:
    """Write the model without its word table, whose rows then are inputs; the SHA-256 of its parts.

    The table is the embedder's own to the byte, and is read where that lies.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(source)
    graph = model.graph
    table = {tensor.name: tensor for tensor in graph.initializer if tensor.name in TABLE}
    width = table[VALUES].dims[1]
    digests = {
        name: {"sha256": hashlib.sha256(numpy_helper.to_array(tensor).tobytes()).hexdigest()}
        for name, tensor in table.items()
    }
    for node in list(graph.node):
        if node.op_type == "Gather" and node.input[0] in TABLE:
            graph.node.remove(node)
    for tensor in table.values():
        graph.initializer.remove(tensor)
    for name, kind, columns in (
        (ROWS, TensorProto.INT8, width),
        (ROW_SCALES, TensorProto.FLOAT, 1),
    ):
        shape = ["batch", "length", columns]
        graph.input.append(helper.make_tensor_value_info(name, kind, shape))
    onnx.checker.check_model(model)
    onnx.save(model, target)
    return digests


def write_manifest(folder: Path, name: str, said: Mapping[str, Any]) -> None:
    """Write `manifest.json` beside a folder's model.

    The tokenizer is the embedder's own and is not copied: its SHA-256 stands here. So does that of
    the word table's parts, where `said` has them (`table`).
    """
    model = folder / MODEL_FILE
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    manifest = {
        "name": f"{name}:1:{digest[:12]}",
        "window": WINDOW,
        "pieces": dict(LENGTHS),
        "table": {},
        "heads": {"answers": list(ANSWER_CLASSES), "changes": list(CHANGE_CLASSES)},
        "tokenizer": {
            "of": "embedder",
            "sha256": hashlib.sha256(TOKENIZER.read_bytes()).hexdigest(),
        },
        "files": {MODEL_FILE: {"sha256": digest, "bytes": model.stat().st_size}},
        "pooling": "mean",
        **said,
    }
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
