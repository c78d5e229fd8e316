"""Writes the attention of an exported network in fewer operators, for a network of many layers.

A short text costs less time in arithmetic than in calling operators. Query, key and value of a
layer become one product, and what is between them and the layer's output one operator of
onnxruntime (`MultiHeadAttention`). The numbers are the same up to rounding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["fuse_attention"]

_DOMAIN: Final = "com.microsoft"
_PARTS: Final = ("query", "key", "value")


def fuse_attention(path: Path, layers: int, heads: int) -> None:
    """Rewrite the file of a network that `minilm_network.export` wrote."""
    model = onnx.load(path)
    graph = model.graph
    mask = helper.make_node("Cast", ["attention_mask"], ["mask.whole"], to=TensorProto.INT32)
    graph.node.insert(0, mask)
    for layer in range(layers):
        _fuse_layer(graph, f"/layers.{layer}", heads)
    _drop_unused(graph)
    model.opset_import.append(helper.make_opsetid(_DOMAIN, 1))
    onnx.save(model, path)


def _fuse_layer(graph: Any, layer: str, heads: int) -> None:
    nodes = {node.name: node for node in graph.node}
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    products = [nodes[f"{layer}/{part}/MatMul"] for part in _PARTS]
    sums = [nodes[f"{layer}/{part}/Add"] for part in _PARTS]
    weights = np.concatenate([tensors[node.input[1]] for node in products], axis=1)
    biases = [next(tensors[name] for name in node.input if name in tensors) for node in sums]
    name = f"{layer}/attention"
    graph.initializer.append(numpy_helper.from_array(weights, f"{name}.weight"))
    graph.initializer.append(numpy_helper.from_array(np.concatenate(biases), f"{name}.bias"))
    parts = [f"{name}.{part}" for part in _PARTS]
    made = [
        helper.make_node(
            "MatMul", [products[0].input[0], f"{name}.weight"], [f"{name}.product"], name=name
        ),
        helper.make_node("Add", [f"{name}.product", f"{name}.bias"], [f"{name}.sum"]),
        helper.make_node("Split", [f"{name}.sum"], parts, axis=-1),
        helper.make_node(
            "MultiHeadAttention",
            [*parts, "", "mask.whole"],
            [f"{name}.mixed"],
            domain=_DOMAIN,
            num_heads=heads,
        ),
    ]
    out = nodes[f"{layer}/out/MatMul"]
    out.input[0] = f"{name}.mixed"
    at = list(graph.node).index(out)
    for node in reversed(made):
        graph.node.insert(at, node)


def _drop_unused(graph: Any) -> None:
    """Remove what leads to no output any more."""
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed & set(node.output):
            kept.append(node)
            needed.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    tensors = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(tensors)
