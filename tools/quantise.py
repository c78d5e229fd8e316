"""Turns a 32-bit ONNX model into the 8-bit one that ships: embedders and reader alike.

`by_token` keeps one scale for each word piece of the activations and one for
each output of the weights. A word piece's numbers then do not depend on what else is in the batch
(the usual dynamic quantisation has one scale for the whole batch), and a scale for each row and
column is finer than one for all. `smooth` moves outliers of the activations into the weights
first (Xiao et al., *SmoothQuant*, arXiv 2211.10438, equation 4). `word_rows` gives each row of the
word table its own scale; `word_blocks` is for a table of 4 bits: 32 numbers share a half float.
Weights of 7 bits (-63..63) cannot overflow the 16-bit sums that
processors with AVX2 but without VNNI use: 255 * 63 * 2 < 32768; weights of 8 bits can.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

__all__ = ["VARIANT", "quantise", "word_blocks", "word_rows"]

Floats = npt.NDArray[np.float32]
VARIANT = "by token, 7 bits, smoothed 0.6"
_WORDS = "word.weight"
_ALPHA, _LIMIT = 0.6, 63
_BLOCK = 32
_OWN_DOMAIN = "com.microsoft"


def quantise(
    source: Path,
    target: Path,
    feeds: Sequence[dict[str, Any]],
    words: Callable[[Path, Path], None] | None = None,
) -> None:
    """The whole model, as it ships: `words` of the word table, smoothed layers, 7 bits by token."""
    with tempfile.TemporaryDirectory() as temporary:
        rows, smoothed = Path(temporary) / "rows.onnx", Path(temporary) / "smoothed.onnx"
        (words or word_rows)(source, rows)
        smooth(rows, smoothed, feeds)
        by_token(smoothed, target)


def word_rows(source: Path, target: Path) -> None:
    """The word table in 8 bits with a scale for each word piece; the rest as it was."""
    model, table, lookup = _without_table(source)
    graph = model.graph
    scale, values = _scaled(table, axis=1, limit=127)
    ids = _constant(graph, "word.values", values), _constant(graph, "word.scale", scale)
    made = [
        helper.make_node("Gather", [ids[0], lookup.input[1]], ["word.whole"]),
        helper.make_node("Cast", ["word.whole"], ["word.float"], to=TensorProto.FLOAT),
        helper.make_node("Gather", [ids[1], lookup.input[1]], ["word.own"]),
        helper.make_node("Mul", ["word.float", "word.own"], [lookup.output[0]]),
    ]
    _save_begun(model, made, target)


def word_blocks(source: Path, target: Path) -> None:
    """The word table in 4 bits with a scale for each 32 numbers; the rest as it was.

    The largest number of a block is -8 scales, as in ggml's Q4_0: a table that was in such blocks
    is the same again. Two numbers share a byte, the first in its lower half.
    """
    model, table, lookup = _without_table(source)
    graph = model.graph
    blocks = table.reshape(len(table), -1, _BLOCK)
    furthest = np.abs(blocks).argmax(axis=2, keepdims=True)
    scale = (np.take_along_axis(blocks, furthest, axis=2) / -8).astype(np.float16)
    divisor = np.where(scale == 0, np.float32(1), scale.astype(np.float32))
    whole = np.clip(np.round(blocks / divisor) + 8, 0, 15).astype(np.uint8).reshape(table.shape)
    names = (
        _constant(graph, "word.values", whole[:, ::2] | whole[:, 1::2] << 4),
        lookup.input[1],
        _constant(graph, "word.scale", scale[:, :, 0]),
    )
    shape = {"bits": 4, "block_size": _BLOCK, "gather_axis": 0, "quantize_axis": 1}
    gathered = helper.make_node(
        "GatherBlockQuantized", names, ["word.half"], domain=_OWN_DOMAIN, **shape
    )
    cast = helper.make_node("Cast", ["word.half"], [lookup.output[0]], to=TensorProto.FLOAT)
    _save_begun(model, [gathered, cast], target)


def _without_table(source: Path) -> tuple[Any, Floats, Any]:
    """A model without its word table, the table, and the node that looked words up in it."""
    model = onnx.load(source)
    graph = model.graph
    table = next(t for t in graph.initializer if t.name == _WORDS)
    graph.initializer.remove(table)
    lookup = next(n for n in graph.node if n.op_type == "Gather" and n.input[0] == _WORDS)
    graph.node.remove(lookup)
    return model, numpy_helper.to_array(table), lookup


def _save_begun(model: Any, nodes: Sequence[Any], target: Path) -> None:
    """Write a model that begins with these nodes."""
    for node in reversed(nodes):
        model.graph.node.insert(0, node)
    if not any(opset.domain == _OWN_DOMAIN for opset in model.opset_import):
        model.opset_import.append(helper.make_opsetid(_OWN_DOMAIN, 1))
    onnx.save(model, target)


def smooth(source: Path, target: Path, feeds: Sequence[dict[str, Any]]) -> None:
    """Divide each activation channel by a factor and multiply its weights by it.

    The factor is max|activation|^0.6 / max|weight|^0.4, over `feeds`; the product of both is
    unchanged.
    """
    model = onnx.load(source)
    graph = model.graph
    weights = {t.name: t for t in graph.initializer}
    largest = _largest_activations(source, feeds)
    for name, peak in largest.items():
        users = [n for n in _weighted(graph) if n.input[0] == name]
        rows = [np.abs(numpy_helper.to_array(weights[n.input[1]])).max(axis=1) for n in users]
        heavy = np.maximum(np.max(rows, axis=0), 1e-5)
        factor = np.maximum(peak, 1e-5) ** _ALPHA / heavy ** (1.0 - _ALPHA)
        factor = (factor / np.exp(np.log(factor).mean())).astype(np.float32)
        divisor = _constant(graph, f"{name}.smooth", (1.0 / factor).astype(np.float32))
        first = next(i for i, n in enumerate(graph.node) if n.name == users[0].name)
        graph.node.insert(first, helper.make_node("Mul", [name, divisor], [f"{name}.smoothed"]))
        for user in users:
            scaled = numpy_helper.to_array(weights[user.input[1]]) * factor[:, None]
            weights[user.input[1]].CopyFrom(numpy_helper.from_array(scaled, user.input[1]))
            user.input[0] = f"{name}.smoothed"
    onnx.save(model, target)


def by_token(source: Path, target: Path) -> None:
    """Every product with weights in whole numbers; a scale for each word piece and each output."""
    model = onnx.load(source)
    graph = model.graph
    weights = {t.name: t for t in graph.initializer}
    quantised: set[str] = set()
    weighted = {n.name for n in _weighted(graph)}
    nodes: list[Any] = []
    one = _constant(graph, "token.one", np.float32(1.0))
    zero = _constant(graph, "token.zero", np.uint8(128))
    step = _constant(graph, "token.step", np.float32(1 / 127))
    least = _constant(graph, "token.least", np.float32(1e-10))
    for node in list(graph.node):
        if node.name not in weighted:
            nodes.append(node)
            continue
        rows, table, result = node.input[0], node.input[1], node.output[0]
        if rows not in quantised:
            quantised.add(rows)
            nodes += [
                helper.make_node("Abs", [rows], [f"{rows}.abs"]),
                helper.make_node("ReduceMax", [f"{rows}.abs"], [f"{rows}.max"], axes=[-1]),
                helper.make_node("Mul", [f"{rows}.max", step], [f"{rows}.step"]),
                helper.make_node("Max", [f"{rows}.step", least], [f"{rows}.scale"]),
                helper.make_node("Div", [rows, f"{rows}.scale"], [f"{rows}.even"]),
                helper.make_node("QuantizeLinear", [f"{rows}.even", one, zero], [f"{rows}.whole"]),
            ]
        scale, values = _scaled(numpy_helper.to_array(weights[table]), axis=0, limit=_LIMIT)
        graph.initializer.remove(weights[table])
        whole = _constant(graph, f"{table}.whole", values)
        columns = _constant(graph, f"{table}.scale", scale[0])
        product = [f"{rows}.whole", whole, one, columns, zero]
        nodes += [
            helper.make_node(
                "MatMulIntegerToFloat",
                product,
                [f"{result}.even"],
                name=node.name,
                domain=_OWN_DOMAIN,
            ),
            helper.make_node("Mul", [f"{result}.even", f"{rows}.scale"], [result]),
        ]
    del graph.node[:]
    _save_begun(model, nodes, target)


def _weighted(graph: Any) -> list[Any]:
    """The products of activations with weights (attention multiplies activations alone)."""
    weights = {t.name for t in graph.initializer}
    return [n for n in graph.node if n.op_type == "MatMul" and n.input[1] in weights]


def _scaled(table: Floats, *, axis: int, limit: int) -> tuple[Floats, npt.NDArray[np.int8]]:
    scale = np.maximum(np.abs(table).max(axis=axis, keepdims=True) / limit, 1e-12)
    whole = np.clip(np.round(table / scale), -limit, limit).astype(np.int8)
    return scale.astype(np.float32), whole


def _constant(graph: Any, name: str, values: Any) -> str:
    graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    return name


def _largest_activations(source: Path, feeds: Sequence[dict[str, Any]]) -> dict[str, Floats]:
    """The largest absolute value of each channel of each input to a product with weights."""
    model = onnx.load(source)
    names = sorted({n.input[0] for n in _weighted(model.graph)})
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    largest: dict[str, Floats] = {}
    for feed in feeds:
        for name, values in zip(names, session.run(names, feed), strict=True):
            peak = np.abs(values).reshape(-1, values.shape[-1]).max(axis=0)
            largest[name] = np.maximum(largest.get(name, np.zeros_like(peak)), peak)
    return largest
